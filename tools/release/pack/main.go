// Command pack makes packages and images of a program that is already built, with any version. Tests
// make a package of an older version with it; make release uses the packages next to it directly.
//
//	go -C tools/release run ./pack --binary FILE --version 0.1.0 --dist FOLDER [--arch arm64] [--what deb,rpm,image]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"freshet/tools/release/image"
	"freshet/tools/release/packages"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("pack", flag.ContinueOnError)
	binary := flags.String("binary", "", "`path` of the program")
	version := flags.String("version", "", "semantic `version` without a v")
	arch := flags.String("arch", "amd64", "`architecture` of the program: amd64 or arm64")
	root := flags.String("root", "../..", "`folder` of the repository")
	dist := flags.String("dist", "", "`folder` of the files")
	what := flags.String("what", "deb,rpm,image", "`list` of what to make, separated by commas")
	epoch := flags.Int64("epoch", 0, "time stamp of all files, in `seconds`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *binary == "" || *version == "" || *dist == "" {
		return errors.New("--binary, --version and --dist are required")
	}
	modified := time.Unix(*epoch, 0).UTC()
	for kind := range strings.SplitSeq(*what, ",") {
		var paths []string
		var err error
		if kind == "image" {
			paths, err = image.Build(&image.Input{
				Binaries: []image.Binary{{Arch: *arch, Path: *binary}}, Version: *version, Commit: "unknown",
				Time: modified, Root: *root, Dist: *dist,
			})
		} else {
			paths = make([]string, 1)
			paths[0], err = packages.Package(&packages.Input{
				Binary: *binary, Version: *version, Arch: *arch, Time: modified, Root: *root, Dist: *dist,
			}, kind)
		}
		if err != nil {
			return err
		}
		fmt.Println(strings.Join(paths, "\n"))
	}
	return nil
}
