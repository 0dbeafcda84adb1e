package resources

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"freshet.dev/client"
)

// Get reads one object.
func (c *Client) Get(ctx context.Context, ref Ref) (Object, error) {
	response, err := c.do(ctx, &client.Request{Method: http.MethodGet, Path: ref.path()})
	if err != nil {
		return nil, err
	}
	return ParseObject(response.Body)
}

// ListOptions filter a list. The zero value selects all objects that the caller may read.
type ListOptions struct {
	// LabelSelector and FieldSelector have the syntax of kubectl.
	LabelSelector, FieldSelector string
	// PageSize is the number of objects per call; 500 when zero.
	PageSize int
}

// Name returns the field selector of an object's name.
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

// defaultPage is the default of ListOptions.PageSize.
const defaultPage = 500

// pages calls page for each page of a list.
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

// listMeta is the metadata of a list.
type listMeta struct {
	Continue        string `json:"continue"`
	ResourceVersion string `json:"resourceVersion"`
}

// List returns the objects of a kind, of one organization, or of all if it is empty. It reads
// them in pages.
func (c *Client) List(ctx context.Context, kind Kind, organization string, o ListOptions) ([]Object, error) {
	var all []Object
	err := c.pages(ctx, kind, organization, o, "application/json", func(body []byte) (string, error) {
		events, meta, err := listEvents(body, kind, false)
		for _, e := range events {
			all = append(all, e.Object)
		}
		return meta.Continue, err
	})
	return all, err
}

// Table contains objects in the server's table format for people.
type Table struct {
	Columns []TableColumn
	Rows    []TableRow
}

// TableColumn is a column. Columns with a priority above 0 are for wide output.
type TableColumn struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Priority int    `json:"priority"`
}

// TableRow is one object.
type TableRow struct {
	Cells []string
	// Name, Organization and ResourceVersion are those of the object.
	Name, Organization string
	ResourceVersion    string
}

const (
	plainJSON = "application/json"
	tableJSON = "application/json;as=Table;v=v1;g=meta.k8s.io," + plainJSON
)

// Table returns objects in the server's table format for people.
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
		return nil, listMeta{}, fmt.Errorf("decoding a table: %w", err)
	}
	if wire.Kind != "Table" {
		return nil, listMeta{}, fmt.Errorf("server response is a %s, not a Table", wire.Kind)
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
