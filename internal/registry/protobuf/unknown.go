package protobuf

// Custom options are extensions of google.protobuf.*Options, and their
// definitions live in annotation files that producers often do not upload:
// other registries never look at them. So an option whose extension nobody
// defined is kept in the text and left out of the check; every other problem
// with an option is an error, as it is for protoc.

// judged returns the model that protoc's rules apply to: the file's own, unless
// it uses such options, or a copy without them.
func (src *source) judged() *file {
	if !src.model.custom {
		return src.model
	}
	dropped := false
	r := rewriter{
		options: func(scope string, options []option) []option {
			var known []option
			for _, o := range options {
				if src.knownOption(scope, o) {
					known = append(known, o)
				}
			}
			dropped = dropped || len(known) < len(options)
			return known
		},
		typeName: func(_, name string) string { return name },
	}
	if judged := r.file(src.model); dropped {
		return judged
	}
	return src.model
}

func (src *source) knownOption(scope string, o option) bool {
	for _, part := range o.name {
		if part.ext && src.resolveExtension(scope, part.name) == nil {
			return false
		}
	}
	return src.knownValue(o.val)
}

// knownValue looks for [extension] keys, which are looked up from the file's
// package whatever the scope of the option.
func (src *source) knownValue(v value) bool {
	for _, e := range v.list {
		if !src.knownValue(e) {
			return false
		}
	}
	for _, f := range v.fields {
		if f.ext && f.url == "" && src.resolveExtension(src.model.pkg, f.name) == nil {
			return false
		}
		if !src.knownValue(f.val) {
			return false
		}
	}
	return true
}
