package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Processes maps names to functions that return the current process id, 0 if the process
// does not run.
type Processes map[string]func() int

// Of returns the name of the process that dialed a connection on loopback, "" if it is none
// of these. It finds the process that owns the remote socket in /proc, so it always returns
// "" on systems other than Linux.
func (p Processes) Of(c net.Conn) string {
	inode := inodeOf(c.RemoteAddr(), c.LocalAddr())
	if inode == "" {
		return ""
	}
	for name, pid := range p {
		if id := pid(); id > 0 && owns(id, "socket:["+inode+"]") {
			return name
		}
	}
	return ""
}

// inodeOf returns the inode of the socket with these two addresses. It searches IPv4 and
// IPv6 sockets, because a program may use an IPv6 socket for an IPv4 address.
func inodeOf(own, other net.Addr) string {
	a, ok := own.(*net.TCPAddr)
	b, ok2 := other.(*net.TCPAddr)
	if !ok || !ok2 {
		return ""
	}
	from, to := fmt.Sprintf(":%04X", a.Port), fmt.Sprintf(":%04X", b.Port)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		const local, remote, inode = 1, 2, 9
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			fields := strings.Fields(lines.Text())
			if len(fields) > inode && strings.HasSuffix(fields[local], from) && strings.HasSuffix(fields[remote], to) {
				return fields[inode]
			}
		}
	}
	return ""
}

// owns reports whether a process has a file open.
func owns(pid int, name string) bool {
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if target, err := os.Readlink(filepath.Join(dir, entry.Name())); err == nil && target == name {
			return true
		}
	}
	return false
}
