package image

import (
	"context"

	"freshet/tools/release/plan"
)

// Release writes the image of all servers for Linux in the release.
func Release(_ context.Context, p *plan.Plan) error {
	in := &Input{Version: p.Version, Commit: p.Commit, Time: p.Time, Root: p.Root, Dist: p.Dist}
	for _, t := range p.Targets {
		if !t.CLI && t.OS == "linux" {
			in.Binaries = append(in.Binaries, Binary{Arch: t.Arch, Path: p.Binary(t), Notices: p.Notices(t)})
		}
	}
	if len(in.Binaries) == 0 {
		return nil
	}
	_, err := Build(in)
	return err
}
