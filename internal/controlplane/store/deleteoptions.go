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

// WithDeleteQuery keeps the query of a delete call. The machinery reads the
// options from the body or, when there is none, from the query; a dryRun beside
// a body would be passed over, and the object really deleted.
func WithDeleteQuery(ctx context.Context, query url.Values) context.Context {
	return context.WithValue(ctx, deleteQuery{}, query)
}

// maxGrace is the longest grace period, a bit more than 68 years; what is much
// longer overflows the time of deletion.
const maxGrace = math.MaxInt32

// completeDeleteOptions completes the options of a delete call from its query, and refuses
// what the machinery would let through (docs/spec/resources.md#r11).
func completeDeleteOptions(ctx context.Context, options *metav1.DeleteOptions) error {
	if options == nil {
		return nil
	}
	var errs field.ErrorList
	if query, ok := ctx.Value(deleteQuery{}).(url.Values); ok {
		var asked metav1.DeleteOptions
		if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&query, &asked, nil); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		errs = merge(options, &asked)
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

// merge adds to the options what only the query says; saying two things is an error.
func merge(options, asked *metav1.DeleteOptions) field.ErrorList {
	for _, value := range asked.DryRun {
		if !slices.Contains(options.DryRun, value) {
			options.DryRun = append(options.DryRun, value)
		}
	}
	errs := mergeOne("gracePeriodSeconds", &options.GracePeriodSeconds, asked.GracePeriodSeconds)
	errs = append(errs, mergeOne("orphanDependents", &options.OrphanDependents, asked.OrphanDependents)...) //nolint:staticcheck // deprecated, and specified (docs/spec/resources.md#delete-parameters)
	return append(errs, mergeOne("propagationPolicy", &options.PropagationPolicy, asked.PropagationPolicy)...)
}

func mergeOne[V comparable](name string, value **V, asked *V) field.ErrorList {
	switch {
	case asked == nil:
	case *value == nil:
		*value = asked
	case **value != *asked:
		return field.ErrorList{field.Invalid(field.NewPath(name), **value, fmt.Sprintf("the query says %v", *asked))}
	}
	return nil
}
