// Command release builds the files of a release into a folder. The Makefile calls its subcommands;
// each one is a package beside this file:
//
//	go -C tools/release run . COMMAND [--root FOLDER] [--dist FOLDER] [--only TARGET,TARGET]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"freshet/tools/release/archives"
	"freshet/tools/release/binaries"
	"freshet/tools/release/image"
	"freshet/tools/release/notices"
	"freshet/tools/release/packages"
	"freshet/tools/release/plan"
	"freshet/tools/release/sbom"
	"freshet/tools/release/sums"
)

// command is one step of a release.
type command struct {
	name  string
	about string
	run   func(context.Context, *plan.Plan) error
}

// commands are the steps, in the order in which make release runs them.
var commands = []command{
	{"binaries", "compile the programs, write man pages and completions", binaries.Build},
	{"notices", "write the licences of third parties", notices.Build},
	{"archives", "pack tar.gz and zip", archives.Build},
	{"packages", "build the deb and rpm packages", packages.Build},
	{"image", "build the container image", image.Release},
	{"sbom", "write the parts lists of the archives", sbom.Build},
	{"sums", "write SHA256SUMS, and sign it with the key in " + sums.KeyVariable, sums.Build},
	{"version", "print the version, the commit and the time of the commit", printPlan},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("a command is missing; use one of:\n" + list())
	}
	for _, c := range commands {
		if c.name != args[0] {
			continue
		}
		flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
		root := flags.String("root", "../..", "folder of the repository")
		dist := flags.String("dist", "../../dist", "folder of the release's files")
		only := flags.String("only", "", "names of the targets to build, separated by commas; default all")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if flags.NArg() > 0 {
			return fmt.Errorf("%s takes no arguments, got %q", c.name, flags.Args())
		}
		p, err := plan.Read(ctx, *root, *dist, *only)
		if err != nil {
			return err
		}
		return c.run(ctx, p)
	}
	return fmt.Errorf("command %q does not exist; use one of:\n%s", args[0], list())
}

func list() string {
	var text string
	for _, c := range commands {
		text += fmt.Sprintf("  %-10s %s\n", c.name, c.about)
	}
	return text
}

func printPlan(_ context.Context, p *plan.Plan) error {
	_, err := fmt.Println(p.Version, p.Commit, p.Time.Unix())
	return err
}
