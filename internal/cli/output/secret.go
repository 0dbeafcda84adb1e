package output

import (
	"fmt"
	"io"
	"os"
)

// WarnIfReadable prints a warning on warnings if stream is a file that other users can read,
// such as a file that the shell created for a redirection. what names the secret in it.
func WarnIfReadable(stream any, warnings io.Writer, what string) error {
	file, ok := stream.(*os.File)
	if !ok {
		return nil
	}
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o077 == 0 {
		return nil //nolint:nilerr // writing to the file reports the error
	}
	_, err = fmt.Fprintf(warnings, "Warning: other users can read the file of standard output (mode %#o), and %s is "+
		"secret; run 'chmod 600' on the file, and 'umask 077' before the command.\n", info.Mode().Perm(), what)
	return err
}
