package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"freshet/client"
)

// Get reads one object.
func (c *Client) Get(ctx context.Context, ref Ref) (Object, error) {
	response, err := c.do(ctx, &client.Request{Method: http.MethodGet, Path: ref.path()})
	if err != nil {
		return nil, err
	}
	return ParseObject(response.Body)
}

// ListOptions narrow a list. The zero value is everything that the caller may read.
type ListOptions struct {
	// LabelSelector and FieldSelector have the forms that kubectl takes.
	LabelSelector, FieldSelector string
	// PageSize is how many objects one call asks for; 500 when zero.
	PageSize int
}

// Name selects the object of one name.
func Name(name string) string { return "metadata.name=" + name }

func (o ListOptions) query() url.Values {
	query := url.Values{}
	if o.LabelSelector != "" {
		query.Set("labelSelector", o.LabelSelector)
	}
	if o.FieldSelector != "" {
		query.Set("fieldSelector", o.FieldSelector)
	}
	return query
}

// defaultPage is how many objects one call asks for.
const defaultPage = 500

// pages walks through the pages of a list.
func (c *Client) pages(ctx context.Context, kind Kind, organization string, o ListOptions, accept string,
	page func([]byte) (next string, err error),
) error {
	query := o.query()
	size := o.PageSize
	if size <= 0 {
		size = defaultPage
	}
	query.Set("limit", strconv.Itoa(size))
	for {
		response, err := c.do(ctx, &client.Request{
			Method: http.MethodGet, Path: kind.path(organization), Query: query,
			Header: http.Header{"Accept": {accept}},
		})
		if err != nil {
			return err
		}
		next, err := page(response.Body)
		if err != nil || next == "" {
			return err
		}
		query.Set("continue", next)
	}
}

// listMeta is what a list says about itself.
type listMeta struct {
	Continue        string `json:"continue"`
	ResourceVersion string `json:"resourceVersion"`
}

// List reads objects of a kind, page by page: those of an organization, or of all
// when it is empty.
func (c *Client) List(ctx context.Context, kind Kind, organization string, o ListOptions) ([]Object, error) {
	var all []Object
	err := c.pages(ctx, kind, organization, o, "application/json", func(body []byte) (string, error) {
		var list struct {
			Metadata listMeta          `json:"metadata"`
			Items    []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(body, &list); err != nil {
			return "", fmt.Errorf("the server's list of %s cannot be read: %w", kind.Resource, err)
		}
		for _, item := range list.Items {
			object, err := ParseObject(item)
			if err != nil {
				return "", err
			}
			// Items of some lists do not say what they are.
			if object.Kind() == "" {
				object["kind"], object["apiVersion"] = kind.Kind, kind.APIVersion()
			}
			all = append(all, object)
		}
		return list.Metadata.Continue, nil
	})
	return all, err
}

// Table is objects as the server shows them to people.
type Table struct {
	Columns []TableColumn
	Rows    []TableRow
}

// TableColumn is a column. Those of a priority above 0 are for who asks for all.
type TableColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Priority int    `json:"priority"`
}

// TableRow is one object.
type TableRow struct {
	Cells []string
	// Name and Organization are the object's.
	Name, Organization string
	// ResourceVersion is the object's.
	ResourceVersion string
}

const (
	plainJSON = "application/json"
	tableJSON = "application/json;as=Table;v=v1;g=meta.k8s.io," + plainJSON
)

// Table asks for objects as the server shows them to people.
func (c *Client) Table(ctx context.Context, kind Kind, organization string, o ListOptions) (*Table, error) {
	whole := &Table{}
	err := c.pages(ctx, kind, organization, o, tableJSON, func(body []byte) (string, error) {
		page, meta, err := parseTable(body)
		if err != nil {
			return "", err
		}
		if len(page.Columns) > 0 {
			whole.Columns = page.Columns
		}
		whole.Rows = append(whole.Rows, page.Rows...)
		return meta.Continue, nil
	})
	return whole, err
}

func parseTable(text []byte) (*Table, listMeta, error) {
	var wire struct {
		Kind     string        `json:"kind"`
		Metadata listMeta      `json:"metadata"`
		Columns  []TableColumn `json:"columnDefinitions"`
		Rows     []struct {
			Cells  []any  `json:"cells"`
			Object Object `json:"object"`
		} `json:"rows"`
	}
	decoder := json.NewDecoder(strings.NewReader(string(text)))
	decoder.UseNumber()
	if err := decoder.Decode(&wire); err != nil {
		return nil, listMeta{}, fmt.Errorf("the server's table cannot be read: %w", err)
	}
	if wire.Kind != "Table" {
		return nil, listMeta{}, fmt.Errorf("the server has no table: it sent a %s", wire.Kind)
	}
	table := &Table{Columns: wire.Columns}
	for _, row := range wire.Rows {
		cells := make([]string, len(row.Cells))
		for i, cell := range row.Cells {
			cells[i] = cellText(cell)
		}
		table.Rows = append(table.Rows, TableRow{
			Cells: cells, Name: row.Object.Name(), Organization: row.Object.Organization(),
			ResourceVersion: row.Object.ResourceVersion(),
		})
	}
	return table, wire.Metadata, nil
}

func cellText(cell any) string {
	switch v := cell.(type) {
	case nil:
		return "<none>"
	case string:
		return v
	}
	return fmt.Sprint(cell)
}
