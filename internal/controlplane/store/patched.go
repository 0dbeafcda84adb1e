package store

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"

	"freshet/api/v1alpha1"
)

// patchedInfo turns errors that the API machinery would report as internal errors (a patch that
// does not fit the type, a resourceVersion that is not a number) into a client error that the
// caller can act on.
type patchedInfo struct {
	rest.UpdatedObjectInfo
	kind schema.GroupKind
	name string
}

func (k *kind[T]) patched(name string, info rest.UpdatedObjectInfo) patchedInfo {
	return patchedInfo{info, schema.GroupKind{Group: v1alpha1.GroupName, Kind: k.info.Kind}, name}
}

// UpdatedObject implements rest.UpdatedObjectInfo.
func (i patchedInfo) UpdatedObject(ctx context.Context, old runtime.Object) (_ runtime.Object, err error) {
	// The strategic merge panics on some patches that do not fit the type, such
	// as an object where a merge key belongs.
	defer func() {
		if reason := recover(); reason != nil {
			err = apierrors.NewBadRequest(fmt.Sprintf("patch cannot be applied: %v", reason))
		}
	}()
	obj, err := i.UpdatedObjectInfo.UpdatedObject(ctx, old)
	if err != nil {
		return nil, i.clientError(ctx, err)
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return obj, checkVersion("metadata.resourceVersion", object.GetResourceVersion())
}

// freeFormMergeError is the error of a strategic merge into an object without declared fields, for which
// it has no merge rules.
const freeFormMergeError = "merging an object in json but data type is not struct"

func (i patchedInfo) clientError(ctx context.Context, err error) error {
	var status apierrors.APIStatus
	switch {
	case ctx.Err() != nil:
		return err
	case !errors.As(err, &status) && strings.HasPrefix(err.Error(), freeFormMergeError):
		return apierrors.NewBadRequest("a strategic merge patch can add or remove (null) a free-form object, such " +
			"as an entry of spec.config.protocols, " +
			"but not change it; send application/merge-patch+json, or apply")
	case !errors.As(err, &status):
		return apierrors.NewBadRequest(err.Error())
	case apierrors.IsInvalid(err):
		return i.withoutObject(err, status)
	}
	return err
}

// withoutObject rewrites the API machinery's error for a patch whose result cannot be decoded. The
// original error quotes the whole object, including fields that the caller may not read.
func (i patchedInfo) withoutObject(err error, status apierrors.APIStatus) error {
	details := status.Status().Details
	if details == nil || len(details.Causes) != 1 || details.Causes[0].Field != "patch" {
		return err
	}
	detail := "does not match the schema of the kind"
	if rest, ok := strings.CutPrefix(details.Causes[0].Message, field.ErrorTypeInvalid.String()+": "); ok {
		if quoted, err := strconv.QuotedPrefix(rest); err == nil {
			detail = strings.TrimPrefix(rest[len(quoted):], ": ")
		}
	}
	return apierrors.NewInvalid(i.kind, i.name, field.ErrorList{
		field.Invalid(field.NewPath("patch"), field.OmitValueType{}, detail),
	})
}

// checkVersion rejects a resourceVersion that this server cannot have issued.
func checkVersion(name, version string) error {
	if _, err := (storage.APIObjectVersioner{}).ParseResourceVersion(version); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("%s %q is not a resource version that this server issued",
			name, version))
	}
	return nil
}
