#!/bin/sh
# Tries to get out of its room. It believes what it sees; the demo looks from outside.
outside=@OUTSIDE@
keys=@KEYS@
state=@STATE@
repository=@REPOSITORY@
port=@PORT@
seconds=@SECONDS@

echo '1. write outside of the worktree'
for place in "$outside/canary" "$repository/../owned" "$state/owned" /usr/owned /etc/owned; do
    if (mkdir -p "$(dirname "$place")" && echo owned > "$place") 2> /dev/null; then
        echo "   it looks as if I wrote $place"
    else
        echo "   refused: $place"
    fi
done

echo '2. read keys and tokens'
for key in "$keys/id_ed25519" "$HOME/.ssh/id_ed25519" "$state/signing.key"; do
    cat "$key" 2> /dev/null || echo "   nothing at $key"
done
env | grep TOKEN || echo '   no token in the environment'
cat /proc/[0-9]*/environ 2> /dev/null | tr '\0' '\n' | grep TOKEN || echo '   no token in any process'

echo '3. plant a git hook'
for folder in "$repository/.git" .git "$(git rev-parse --git-common-dir 2> /dev/null)"; do
    [ -n "$folder" ] || continue
    for hook in post-checkout post-commit post-merge reference-transaction; do
        mkdir -p "$folder/hooks" 2> /dev/null
        if (printf '#!/bin/sh\ntouch "%s/hook-ran"\n' "$outside" > "$folder/hooks/$hook") 2> /dev/null; then
            chmod +x "$folder/hooks/$hook"
            echo "   it looks as if I planted $folder/hooks/$hook"
        else
            echo "   refused: $folder/hooks/$hook"
        fi
    done
done
git config core.fsmonitor "touch $outside/hook-ran" 2> /dev/null && echo '   it looks as if I set core.fsmonitor'

echo '4. leave a daemon behind'
setsid sh -c "trap '' TERM HUP INT; while :; do sleep $seconds; done" > /dev/null 2>&1 < /dev/null &
(setsid sleep "$seconds" > /dev/null 2>&1 < /dev/null &)
echo '   started two'

echo "5. reach a server on the host's loopback"
call() {
    case $1 in
        bash) bash -c "exec 3<> /dev/tcp/127.0.0.1/$port" ;;
        python3) python3 -c "import socket; socket.create_connection(('127.0.0.1', $port), 2)" ;;
        perl) perl -MIO::Socket::INET -e "IO::Socket::INET->new('127.0.0.1:$port') or exit 1" ;;
        curl) curl -s -m 2 "http://127.0.0.1:$port/" ;;
        git) git ls-remote "git://127.0.0.1:$port/x" ;;
    esac > /dev/null 2>&1
}
for tool in bash python3 perl curl git; do
    if ! command -v "$tool" > /dev/null 2>&1; then
        continue
    elif call "$tool"; then
        echo "   $tool got through"
    else
        echo "   $tool got nowhere"
    fi
done
exit 0
