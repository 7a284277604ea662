//! Pictures by their bytes and by every form of reference.

use super::tests::{Repository, codes, png};

#[test]
fn pictures_are_judged_by_their_bytes() {
    let judged = |name: &str, bytes: &[u8]| {
        let repository = Repository::default().file(name, bytes).change(
            "a.md",
            None,
            &format!("![x]({name})\n"),
        );
        let found: Vec<String> = repository
            .reasons()
            .into_iter()
            .map(|reason| reason.code)
            .collect();
        found.join(" ")
    };
    let real = png(8, 8, true);
    assert_eq!(judged("r.png", &real), "");
    assert_eq!(judged("r.jpg", &real), "img.ext");
    assert_eq!(judged("r.png", b""), "img.empty");
    assert_eq!(judged("r.png", b"<html>not found</html>"), "img.magic");
    assert_eq!(judged("r.png", &real[..real.len() / 2]), "img.truncated");
    assert_eq!(judged("r.png", &png(2, 9, true)), "img.tiny");
    assert_eq!(judged("r.png", &png(9, 9, false)), "img.blank");
    assert_eq!(
        judged(
            "r.png",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
        ),
        "img.lfs"
    );
    assert_eq!(judged("r.svg", b"<svg><circle r='3'/></svg>"), "");
    assert_eq!(
        judged("r.svg", b"<svg><text>Figure 1</text></svg>"),
        "img.svg-text"
    );
    assert_eq!(judged("r.svg", b"<svg></svg>"), "img.svg-empty");
    assert_eq!(judged("r.svg", b"<svg><g></svg>"), "img.magic");
    // A header that claims 60,000 by 60,000 pixels is not decoded.
    let mut vast = b"BM".to_vec();
    vast.extend([0; 12]);
    vast.extend(40_u32.to_le_bytes());
    vast.extend(60_000_u32.to_le_bytes());
    vast.extend(60_000_u32.to_le_bytes());
    vast.extend([1, 0, 24, 0]);
    vast.extend([0; 24]);
    assert_eq!(judged("r.bmp", &vast), "img.large");
}

#[test]
fn references_of_all_forms() {
    let cases = [
        (
            "a.md",
            "![x](img/real.png)\n![x](<img/real.png>)\n![x](img/real.png?raw=true)\n![x][r]\n![r]\n\n[r]: img/real.png\n",
            &[][..],
        ),
        ("a.md", "![x](img/none.png)\n", &["img.missing"]),
        ("a.md", "<img src='img/none.png'>\n", &["img.missing"]),
        ("a.md", "![x][nowhere]\n", &["img.undefined"]),
        ("a.md", "![x](../img/real.png)\n", &["img.escape"]),
        ("a.md", "![x](file:///tmp/a.png)\n", &["img.local"]),
        ("a.md", "![x](img/Real.PNG)\n", &["img.case"]),
        (
            "a.md",
            "![x](https://example.org/a.png)\n",
            &["~img.remote"],
        ),
        ("a.md", "[see](img/none.png)\n", &["~img.link"]),
        ("a.md", "![x](data:image/png;base64,AAAA)\n", &["img.magic"]),
        ("a.md", "Figure 1 shows the flow.\n", &["~img.claimed"]),
        ("a.md", "如图 1 所示。\n", &["~img.claimed"]),
        ("d/a.rst", ".. |p| image:: ../img/real.png\n", &[]),
        ("d/a.rst", ".. figure:: /img/real.png\n\n   Caption\n", &[]),
        ("d/a.rst", ".. image:: none.png\n", &["img.missing"]),
        (
            "d/a.adoc",
            ":imagesdir: img\n\nimage::real.png[]\n\nSee image:none.png[x].\n",
            &["img.missing"],
        ),
        (
            "d/a.html",
            "<picture><source srcset='../img/real.png 2x, none.png'></picture>",
            &["img.missing"],
        ),
        ("a.html", "<svg><text>x</text></svg>", &["img.svg-text"]),
    ];
    for (path, text, expected) in cases {
        assert_eq!(codes(path, text), expected, "{path}: {text}");
    }
}
