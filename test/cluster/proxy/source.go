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

// Processes are processes that dial, by name: what each returns is its id now, 0
// when there is none.
type Processes map[string]func() int

// Of names the process that has dialled a connection on loopback; "" when it is none
// of these. It asks the system whose socket the other end is, which works on Linux;
// elsewhere nobody is found.
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

// inodeOf finds the socket that has these two addresses, of both families: a
// program may use one of the newer family for an address of the older.
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

// owns says whether a process has a file open.
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
