#!/bin/sh
# Draws where a figure was asked for.
set -eu

echo 'drawing the architecture'
mkdir -p docs
cat > docs/architecture.md <<'MARKDOWN'
# Architecture

The figure shows how a request travels.

```
+-----------+        +-----------+        +-----------+
|  Browser  | -----> |  Server   | -----> | Database  |
+-----------+        +-----------+        +-----------+
                           |
                           v
                     +-----------+
                     |   Cache   |
                     +-----------+
```

The server asks the cache first.
MARKDOWN
echo 'Added docs/architecture.md with a figure of the architecture.' > "$AIRLOCK_NOTE"
