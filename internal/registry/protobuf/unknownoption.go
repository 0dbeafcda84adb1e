package protobuf

// Custom options are extensions of google.protobuf.*Options. Producers often do not upload
// the annotation files that define them, because Confluent Schema Registry does not check
// them. So an option without a definition is kept in the text and excluded from the check.
// Every other problem with an option is an error, as in protoc.

// checkedModel returns the model that protoc's checks apply to: the file's own model, or a copy
// without the options that have no definition.
func (src *source) checkedModel() *file {
	if !src.model.custom {
		return src.model
	}
	dropped := false
	r := rewriter{
		options: func(scope string, options []option) []option {
			var known []option
			for _, o := range options {
				if src.definedOption(scope, o) {
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

func (src *source) definedOption(scope string, o option) bool {
	for _, part := range o.name {
		if part.ext && src.resolveExtension(scope, part.name) == nil {
			return false
		}
	}
	return src.definedValue(o.val)
}

// definedValue reports whether all [extension] keys of a value have a definition. They are
// resolved in the file's package, independent of the scope of the option.
func (src *source) definedValue(v value) bool {
	for _, e := range v.list {
		if !src.definedValue(e) {
			return false
		}
	}
	for _, f := range v.fields {
		if f.ext && f.url == "" && src.resolveExtension(src.model.pkg, f.name) == nil {
			return false
		}
		if !src.definedValue(f.val) {
			return false
		}
	}
	return true
}
