package auditapi

import (
	"net/url"
	"strconv"
	"time"

	"freshet/internal/base/errs"
	"freshet/internal/ops/audit"
)

var errQuery = errs.New(errs.Invalid, "query is not valid")

// parseQuery parses the filters. It rejects an unknown or repeated parameter: a caller
// that misspells a filter must not mistake the response for a filtered one.
func parseQuery(raw string) (audit.Query, error) {
	q := audit.Query{Limit: audit.DefaultLimit}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, errs.Newf(errs.Invalid, "%w: %w", errQuery, err)
	}
	for name, occurrences := range values {
		if len(occurrences) != 1 {
			return q, errs.Newf(errs.Invalid, "%w: parameter %s occurs %d times", errQuery, name, len(occurrences))
		}
		if err := setFilter(&q, name, occurrences[0]); err != nil {
			return q, err
		}
	}
	return q, nil
}

func setFilter(q *audit.Query, name, value string) error {
	var err error
	switch name {
	case "organization":
		q.Organization = value
	case "principal":
		q.Principal = value
	case "surface":
		q.Surface = value
	case "verb":
		q.Verb = value
	case "resource":
		q.Resource = value
	case "requestId":
		q.RequestID = value
	case "decision":
		q.Decision = audit.Decision(value)
		if value != "" && q.Decision != audit.Allowed && q.Decision != audit.Denied {
			return errs.Newf(errs.Invalid, "%w: decision must be %s or %s", errQuery, audit.Allowed, audit.Denied)
		}
	case "since":
		q.Since, err = parseTime(name, value)
	case "until":
		q.Until, err = parseTime(name, value)
	case "limit":
		q.Limit, err = strconv.Atoi(value)
		if err != nil || q.Limit < 1 || q.Limit > audit.MaxLimit {
			return errs.Newf(errs.Invalid, "%w: limit must be an integer from 1 to %d", errQuery, audit.MaxLimit)
		}
	default:
		return errs.Newf(errs.Invalid, "%w: unknown parameter %s", errQuery, strconv.Quote(name))
	}
	return err
}

func parseTime(name, value string) (time.Time, error) {
	if value == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, value)
	if err != nil {
		return time.Time{}, errs.Newf(errs.Invalid, "%w: %s must be an RFC 3339 time such as 2026-01-02T15:04:05Z",
			errQuery, name)
	}
	return t, nil
}
