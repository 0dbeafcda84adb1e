package store

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

type deleteQuery struct{}

// WithDeleteQuery stores the query of a delete call in the context. The API machinery reads the
// options from the body or, if there is none, from the query. It would ignore dryRun in the query
// of a call with a body and delete the object.
func WithDeleteQuery(ctx context.Context, query url.Values) context.Context {
	return context.WithValue(ctx, deleteQuery{}, query)
}

// maxGrace is the longest grace period in seconds, about 68 years; a much longer one would overflow
// the deletion time.
const maxGrace = math.MaxInt32

// completeDeleteOptions adds the options in the query of a delete call, and rejects values that the
// API machinery would accept (docs/spec/resources.md#r11).
func completeDeleteOptions(ctx context.Context, options *metav1.DeleteOptions) error {
	if options == nil {
		return nil
	}
	var errs field.ErrorList
	if query, ok := ctx.Value(deleteQuery{}).(url.Values); ok {
		var fromQuery metav1.DeleteOptions
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, &fromQuery, nil); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		errs = mergeDeleteOptions(options, &fromQuery)
	}
	errs = append(errs, metav1validation.ValidateDeleteOptions(options)...)
	if grace := options.GracePeriodSeconds; grace != nil && (*grace < 0 || *grace > maxGrace) {
		errs = append(errs, field.Invalid(field.NewPath("gracePeriodSeconds"), *grace,
			fmt.Sprintf("must be from 0 to %d", maxGrace)))
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	if p := options.Preconditions; p != nil && p.ResourceVersion != nil {
		return checkVersion("preconditions.resourceVersion", *p.ResourceVersion)
	}
	return nil
}

// mergeDeleteOptions adds the options that only the query contains; a contradiction is an error.
func mergeDeleteOptions(options, fromQuery *metav1.DeleteOptions) field.ErrorList {
	for _, value := range fromQuery.DryRun {
		if !slices.Contains(options.DryRun, value) {
			options.DryRun = append(options.DryRun, value)
		}
	}
	errs := mergeOption("gracePeriodSeconds", &options.GracePeriodSeconds, fromQuery.GracePeriodSeconds)
	//nolint:staticcheck // deprecated, and specified (docs/spec/resources.md#delete-parameters)
	errs = append(errs, mergeOption("orphanDependents", &options.OrphanDependents, fromQuery.OrphanDependents)...)
	return append(errs, mergeOption("propagationPolicy", &options.PropagationPolicy, fromQuery.PropagationPolicy)...)
}

func mergeOption[V comparable](name string, value **V, fromQuery *V) field.ErrorList {
	switch {
	case fromQuery == nil:
	case *value == nil:
		*value = fromQuery
	case **value != *fromQuery:
		return field.ErrorList{field.Invalid(field.NewPath(name), **value,
			fmt.Sprintf("differs from the query parameter, which is %v", *fromQuery))}
	}
	return nil
}
