// Package contract runs conversations: files that say, request by request, how
// a Freshet server answers. They are the executable form of the three
// specifications and run against any base URL. This package owns the format
// and the runner; what is said lies beside it, one folder per surface
// (resources, messages, registry).
//
// # Format
//
// A conversation is a txtar archive. Its comment says what it is about; each
// of its files is one exchange, run in order:
//
//	Replace by POST on the item.
//
//	-- create --
//	POST /apis/cloud.vendor.io/v1alpha1/namespaces/{{ns}}/users
//	Content-Type: application/json
//
//	{"metadata": {"name": "ann"}, "spec": {"email": "ann@example.org"}}
//	==>
//	201
//	Content-Type: application/json
//
//	{"metadata": {"uid": "{{uid}}", "generation": 1}}
//
// Above ==> stands the request: method and path, headers, an empty line, the
// body. Lines that begin with ? or & after white space continue the path's
// query. Below it stands what must come back: a status (201, 200|202, 4xx),
// headers, an empty line, the body. What is not mentioned is not checked.
//
// Every request carries "Authorization: Bearer {{token}}" unless it says
// otherwise; "Authorization: none" sends no such header.
//
// # Variables
//
// {{name}} in a request stands for a variable's value; {{name|query}},
// {{name|path}}, {{name|base64}} and {{name|json}} encode it. {{repeat x 129}}
// and {{time +1h}} compute one. Given are base, host, token, run (unique to
// this run) and ns (an organization unique to this conversation and case).
//
// In an expected body or header, {{name}} must equal a variable that is set,
// and sets one that is not: that is how a value is captured. A placeholder may
// be a part of a string; a whole one captures the JSON value with its type.
//
// # Bodies
//
// An expected JSON body is a subset: objects may hold more than is written,
// lists must match element by element. Strings may be matchers:
//
//	"{{any}}"       anything but null      "{{absent}}"     the key must not be there
//	"{{string}}"    a non-empty string     "{{number}}"     a number
//	"{{bool}}"      a boolean              "{{time}}"       an RFC 3339 time
//	"{{object}}"    an object              "{{array}}"      a list
//	"{{re EXPR}}"   a string or number that the expression matches whole
//
// A list whose first element is "{{contains}}" asks that each further element
// match some element; "{{unordered}}" that they match all of them in any
// order; "{{lacks}}" that none of them match any, also when there is no list at
// all. Outside strings, {{name}} puts in a variable's JSON value.
//
// # Directives
//
// Lines that begin with @, first thing in a request or response:
//
//	@retry 10s      ask again until the answer is as expected
//	@again STEP 10s when the answer is not as expected, go back to STEP, as
//	                often as fits into the time
//	@timeout 5s     how long one answer may take (default 30s)
//	@raw NAME       the body is the saved body NAME, byte for byte
//	@exact          objects hold what is written and nothing more
//	@body KIND      how the expected body is meant: json (the default when it
//	                begins like JSON), yaml, stream (JSON values one after the
//	                other, extra ones allowed between), text (the whole body,
//	                placeholders allowed), contains (each line is somewhere in
//	                it), prefix (a quoted Go string it begins with), empty
//	@save NAME      keep the body as it is
//
// # Includes
//
// A file named "include FILE" stands for the steps of a file beside the
// conversation.
//
// # Cases
//
// A file named "cases" holds one JSON object per line; the conversation runs
// once for each, with the object's members as variables. "cases FILE" reads
// them from a file beside the conversation. Each case has a "case" member that
// names it.
package contract
