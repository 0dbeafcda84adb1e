package attack

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// socket is a socket that other processes can connect to: a listening TCP port, a UDP
// port, or a unix socket with a name, in the file system or (with @) abstract.
type socket struct{ network, address string }

// sockets returns the sockets of a process that accept connections, from /proc.
func sockets(t *testing.T, pid int) []socket {
	t.Helper()
	inodes := socketInodes(t, pid)
	var found []socket
	for _, table := range []string{"tcp", "tcp6"} {
		for _, fields := range procTable(t, pid, table) {
			const listening, inode = "0A", 9
			if len(fields) > inode && fields[3] == listening && inodes[fields[inode]] {
				found = append(found, socket{"tcp", hexAddress(t, fields[1])})
			}
		}
	}
	for _, table := range []string{"udp", "udp6"} {
		for _, fields := range procTable(t, pid, table) {
			const inode = 9
			if len(fields) > inode && inodes[fields[inode]] {
				found = append(found, socket{"udp", hexAddress(t, fields[1])})
			}
		}
	}
	for _, fields := range procTable(t, pid, "unix") {
		const inode, path = 6, 7
		if len(fields) > path && inodes[fields[inode]] {
			found = append(found, socket{"unix", fields[path]})
		}
	}
	slices.SortFunc(found, func(a, b socket) int { return strings.Compare(a.network+a.address, b.network+b.address) })
	return slices.Compact(found)
}

// socketInodes returns the inodes of the process's open sockets.
func socketInodes(t *testing.T, pid int) map[string]bool {
	t.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	inodes := make(map[string]bool)
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err != nil {
			continue // closed in the meantime
		}
		if rest, ok := strings.CutPrefix(target, "socket:["); ok {
			inodes[strings.TrimSuffix(rest, "]")] = true
		}
	}
	return inodes
}

// procTable reads a table of /proc/PID/net without its header line.
func procTable(t *testing.T, pid int, name string) [][]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
	if os.IsNotExist(err) {
		return nil // this machine does not support the protocol
	}
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for _, line := range strings.Split(string(text), "\n")[1:] {
		rows = append(rows, strings.Fields(line))
	}
	return rows
}

// hexAddress parses an address of /proc/net: 32-bit words in host byte order, which is
// little endian on every machine that runs the tests.
func hexAddress(t *testing.T, text string) string {
	t.Helper()
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		slices.Reverse(raw[i : i+4])
	}
	number, err := strconv.ParseUint(port, 16, 16)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(net.IP(raw).String(), strconv.FormatUint(number, 10))
}
