package command

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"freshet/internal/cli/output"
)

// Result is what a command has done to one object, in the form of -o json.
type Result struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Action string `json:"action"` // created, deleted, exists, …
	// Count is the number of messages or versions that an action was done to, if it has one.
	Count *int `json:"count,omitempty"`
	// File is the file or directory that the command has written, if there is one.
	File string `json:"file,omitempty"`
	// Until is the time at which the result, or what it replaces, ends.
	Until string `json:"until,omitempty"`
}

// AddResultFlag adds the flag -o to a command that reports with Done.
func (e *Env) AddResultFlag(f *pflag.FlagSet) {
	AddResultFlag(f, &e.resultFormat)
}

// Done reports what the command has done: as a sentence, or in the format of -o.
func (e *Env) Done(result Result, sentence string, args ...any) error {
	return result.Print(e.Out, e.resultFormat, sentence, args...)
}

// DoneInDetail is Done for a result with more fields: data is its form in -o json.
func (e *Env) DoneInDetail(result Result, data any, sentence string, args ...any) error {
	if e.resultFormat.IsData() {
		return output.Value(e.Out, e.resultFormat, data)
	}
	return e.Done(result, sentence, args...)
}

// Print prints the result: as a sentence, or in another format.
func (r Result) Print(w io.Writer, format output.Format, sentence string, args ...any) error {
	var err error
	switch {
	case format.IsData():
		err = output.Value(w, format, r)
	case format == output.FormatName:
		_, err = fmt.Fprintln(w, output.Clean(r.Name))
	default:
		_, err = fmt.Fprintf(w, sentence+"\n", args...)
	}
	return err
}

// AddResultFlag adds the flag -o to a command without an Env that reports with Result.Print.
func AddResultFlag(f *pflag.FlagSet, format *output.Format) {
	output.AddFlag(f, format, output.FormatText, output.FormatJSON, output.FormatYAML, output.FormatName)
}

// ResultIsText reports whether Done prints sentences.
func (e *Env) ResultIsText() bool { return e.resultFormat == "" || e.resultFormat == output.FormatText }
