//! What a room may use up: memory folders, processes, the size of a file.

use tests::TestEnv;

use super::attack;

#[test]
fn limits_on_processes_files_and_memory_folders_hold() {
    let env = TestEnv::new();
    env.configure("[sandbox]\ntmp = \"4M\"\nhome = \"4M\"\nfile_size = \"2M\"\n");
    let repo = env.repository();
    let script = "head -c 8000000 /dev/zero > /tmp/big || echo tmp is full; head -c 8000000 /dev/zero > $HOME/big || echo home is full; \
                  head -c 3000000 /dev/zero > big || echo file is too large; rm -f big; \
                  for i in $(seq 100); do sleep 983 & done 2>/dev/null || echo too many; true";
    let run = repo.task(&["--task", "t1", "--pids", "40"], script);
    assert!(matches!(run.code, Some(11 | 20 | 23)), "{run}");
    let log = repo.log_of("t1");
    for text in ["tmp is full", "home is full", "file is too large"] {
        assert!(log.contains(text), "{text}\n{log}");
    }
    env.is_quiet();
}

#[test]
fn no_memory_folder_is_without_a_size() {
    let env = TestEnv::new();
    env.configure("[sandbox]\ntmp = \"8M\"\nhome = \"8M\"\n");
    let repo = env.repository();
    let script = r"
def fill(folder):
    written = 0
    try:
        with open(folder.rstrip('/') + '/filled', 'wb') as file:
            for _ in range(100):
                file.write(b'x' * (1 << 20)); file.flush(); written += 1
    except OSError: pass
    try: os.unlink(folder.rstrip('/') + '/filled')
    except OSError: pass
    return written
def many(folder):
    count = 0
    try:
        os.mkdir(folder + '/many')
        for count in range(300000): os.close(os.open('%s/many/%d' % (folder, count), os.O_CREAT))
    except OSError: pass
    subprocess.run(['rm', '-rf', folder + '/many'])
    return count
places = {'/', '/dev', '/run', '/etc', '/var', '/home', '/mnt', '/srv', '/opt', '/root', '/run/airlock', '/dev/pts', '/run/lock'}
for line in open('/proc/self/mounts'):
    place, kind = line.split()[1:3]
    if kind in ('tmpfs', 'devtmpfs', 'ramfs') and not place.startswith((os.getcwd(), '/run/airlock/git', '/run/airlock/outbox')): places.add(place)
for place in sorted(places):
    if fill(place) > 64: print('OPEN', place)
for place in ('/tmp', '/home/agent', '/dev/shm', '/var/tmp'):
    if os.statvfs(place).f_files > 20000: print('OPEN entries', place, os.statvfs(place).f_files)
print(fill('/tmp') <= 8, fill('/home/agent') <= 8, many('/tmp') < 5000, many('/dev/shm') < 20000)
";
    let log = attack(&repo, "t1", &[], script);
    assert_eq!(log, "True True True True\n");
}

#[test]
fn what_is_written_to_memory_is_gone_with_the_room() {
    let env = TestEnv::new();
    let repo = env.repository();
    let script = "for f in /tmp /dev/shm $HOME; do cat $f/airlock-test-left 2>/dev/null; echo mine > $f/airlock-test-left; done";
    for id in ["one", "two"] {
        repo.task(&["--task", id], script).exits(11);
        assert_eq!(repo.log_of(id), "");
    }
    for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
        let left = std::path::Path::new(folder).join("airlock-test-left");
        assert!(!left.exists(), "{}", left.display());
    }
}
