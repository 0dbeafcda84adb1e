package resourcecmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"freshet.dev/client/resources"
	"freshet/internal/base/errs"
	"freshet/internal/cli/hint"
)

// manifest is an object in a file.
type manifest struct {
	from   string // file name, for errors
	ref    resources.Ref
	object resources.Object
}

// maxManifests limits the size of one file in bytes. The server accepts 3 MiB per object.
const maxManifests = 64 << 20

// manifests reads all objects of files, folders (their .yaml, .yml and .json files) and
// standard input (-). The organization of an object takes precedence over that of the
// context.
func (s *session) manifests(paths []string, recursive bool) ([]manifest, error) {
	var all []manifest
	err := each(paths, func(path string) error {
		files, err := filesOf(path, recursive)
		if err != nil {
			return err
		}
		return each(files, func(file string) error {
			found, err := s.read(file)
			all = append(all, found...)
			return err
		})
	})
	if err == nil && len(all) == 0 {
		err = errs.Newf(errs.Invalid, "no objects found in %s", strings.Join(paths, ", "))
	}
	return all, err
}

func filesOf(path string, recursive bool) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, errs.Newf(errs.Invalid, "reading manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	err = filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
		switch ext := filepath.Ext(file); {
		case err != nil:
			return err
		case entry.IsDir() && file != path && !recursive:
			return filepath.SkipDir
		case !entry.IsDir() && (ext == ".yaml" || ext == ".yml" || ext == ".json"):
			files = append(files, file)
		}
		return nil
	})
	if err == nil && len(files) == 0 {
		err = hint.Add(errs.Newf(errs.Invalid, "folder %s has no .yaml, .yml or .json file", path),
			"-R reads its subfolders too.")
	}
	return files, err
}

func (s *session) read(file string) ([]manifest, error) {
	name, input := file, s.env.In
	if file == "-" {
		name = "standard input"
	} else {
		opened, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer func() { _ = opened.Close() }() // only read
		input = opened
	}
	text, err := io.ReadAll(io.LimitReader(input, maxManifests+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxManifests {
		return nil, errs.Newf(errs.TooLarge, "%s is larger than %d MiB", name, maxManifests>>20)
	}
	var all []manifest
	for i, document := range documents(text) {
		found, err := s.parse(document)
		if err != nil {
			return nil, fmt.Errorf("%s, object %d: %w", name, i+1, err)
		}
		for j := range found {
			found[j].from = name
		}
		all = append(all, found...)
	}
	return all, nil
}

// documents splits YAML at its separators; JSON is one document.
func documents(text []byte) [][]byte {
	var parts [][]byte
	for part := range bytes.SplitSeq(append([]byte("\n"), text...), []byte("\n---")) {
		// The rest of a separator line is empty or a comment.
		if len(parts) > 0 {
			_, part, _ = bytes.Cut(part, []byte("\n"))
		}
		parts = append(parts, part)
	}
	var kept [][]byte
	for _, part := range parts {
		var any any
		if err := yaml.Unmarshal(part, &any); err != nil || any != nil {
			kept = append(kept, part)
		}
	}
	return kept
}

// parse returns the object of a document, or the items of a List.
func (s *session) parse(document []byte) ([]manifest, error) {
	text, err := yaml.YAMLToJSONStrict(document)
	if err != nil {
		return nil, errs.Newf(errs.Invalid, "not YAML or JSON: %w", err)
	}
	object, err := resources.ParseObject(text)
	if err != nil {
		return nil, errs.New(errs.Invalid, "not an object: it must have apiVersion, kind and metadata")
	}
	if items, ok := object["items"].([]any); ok && strings.HasSuffix(object.Kind(), "List") {
		var all []manifest
		for _, item := range items {
			fields, ok := item.(map[string]any)
			if !ok {
				return nil, errs.New(errs.Invalid, "list has an item that is not an object")
			}
			m, err := s.manifest(fields)
			if err != nil {
				return nil, err
			}
			all = append(all, m)
		}
		return all, nil
	}
	m, err := s.manifest(object)
	return []manifest{m}, err
}

func (s *session) manifest(object resources.Object) (manifest, error) {
	switch {
	case object.Kind() == "" || object.APIVersion() == "":
		return manifest{}, hint.Add(errs.New(errs.Invalid, "object has no kind or no apiVersion"),
			"Objects begin with 'apiVersion: %s/%s' and a kind, such as 'kind: ServiceAccount'.",
			resources.Group, resources.Version)
	case object.Name() == "" && object.Text("metadata", "generateName") == "":
		return manifest{}, errs.Newf(errs.Invalid, "%s has no metadata.name", object.Kind())
	}
	kind, ok := resources.Of(s.kinds, object)
	if !ok {
		return manifest{}, errs.Newf(errs.NotFound, "kind %s of %s does not exist on the server", object.Kind(),
			object.APIVersion())
	}
	ref := s.ref(kind, object.Name())
	if named := object.Organization(); kind.Namespaced && named != "" {
		if chosen := s.env.Selection().Organization; chosen != "" && chosen != named {
			return manifest{}, errs.Newf(errs.Invalid, "%s is in organization %s, but organization %s was selected",
				ref, named, chosen)
		}
		ref.Organization = named
	}
	return manifest{ref: ref, object: object}, nil
}

// errNoFiles is the usage error of a command without -f.
var errNoFiles = errors.New("-f is missing; name a file, a folder, or - for standard input")
