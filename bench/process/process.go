// Package process reads the CPU time and memory of another process and downloads its
// profiles. The benchmarks read the counters before and after the measured work.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU returns the CPU time that a process has used so far, in user and system mode.
func CPU(pid int) (time.Duration, error) {
	// The clock id of another process's CPU clock is computed as clock_getcpuclockid(3)
	// does: the complement of the pid shifted left by 3, or the clock type.
	const scheduled = 2
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduled), &at); err != nil {
		return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// Resident returns the resident memory of a process in bytes.
func Resident(pid int) (int64, error) {
	statm, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, fmt.Errorf("reading the memory of process %d: %q", pid, statm)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading the memory of process %d: %w", pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}

// Save downloads a URL, for example a profile that a process serves, into a file.
func Save(ctx context.Context, url, file string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s", url, res.Status)
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	return errors.Join(err, f.Close())
}

// Written returns the bytes that a process has caused to be written to storage.
func Written(pid int) (int64, error) {
	counters, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "io"))
	if err != nil {
		return 0, fmt.Errorf("reading the written bytes of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(counters)) {
		if value, ok := strings.CutPrefix(line, "write_bytes: "); ok {
			return strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		}
	}
	return 0, fmt.Errorf("reading the written bytes of process %d: %q", pid, counters)
}

// Renice sets the priority of all threads of a process. Threads that it starts later inherit it.
func Renice(pid, nice int) error {
	threads, err := os.ReadDir(filepath.Join("/proc", strconv.Itoa(pid), "task"))
	if err != nil {
		return fmt.Errorf("listing the threads of process %d: %w", pid, err)
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err != nil {
			return fmt.Errorf("listing the threads of process %d: %w", pid, err)
		}
		if err := unix.Setpriority(unix.PRIO_PROCESS, id, nice); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("setting the priority of process %d: %w", pid, err)
		}
	}
	return nil
}
