package listen

import (
	"net"

	"golang.org/x/sys/unix"
)

// Closing a listener resets the connections that are established but not accepted yet. So
// before that the server makes the kernel drop new connections, and accepts those in the
// backlog.

const (
	flagsOffset = 13   // of the flags in the TCP header, at which the filter's data starts
	synAndAck   = 0x12 // only the first packet of a connection has SYN without ACK
	synOnly     = 0x02
	keepAll     = 1<<31 - 1
)

// dropNewConnections makes the kernel drop the first packet (SYN) of new connections. Clients
// retransmit it after a second, when the port is closed. Other connections are not affected.
func dropNewConnections(l *net.TCPListener) error {
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flagsOffset},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: synAndAck},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: synOnly, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
		{Code: unix.BPF_RET | unix.BPF_K, K: keepAll},
	}
	return controlSocket(l, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER,
			&unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
	})
}

// backlog returns the number of connections that wait to be accepted.
func backlog(l *net.TCPListener) (n int, err error) {
	err = controlSocket(l, func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			n = int(info.Unacked) // for a listener, the length of its accept queue
		}
		return err
	})
	return n, err
}

func controlSocket(l *net.TCPListener, do func(fd int) error) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	if err := raw.Control(func(fd uintptr) { result = do(int(fd)) }); err != nil {
		return err
	}
	return result
}
