// Package contract runs conversations: files with requests to a Freshet server and the
// expected responses. They execute the three specifications and run against any base URL.
// This package owns the format and the runner; the conversations are in its folders, one
// per surface (resources, tokens, identity, messages, registry).
//
// # Format
//
// A conversation is a txtar archive. Its comment describes it; each of its files is one
// request with its response, run in order:
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
// Above ==> is the request: method and path, headers, an empty line, the body. Lines that
// begin with ? or & after white space continue the path's query. Below ==> is the expected
// response: a status (201, 200|202, 4xx), headers, an empty line, the body. Headers and
// fields that are not mentioned are not checked.
//
// Every request has "Authorization: Bearer {{token}}" unless it sets its own;
// "Authorization: none" sends no such header.
//
// # Variables
//
// {{name}} in a request is replaced by a variable's value; {{name|query}}, {{name|path}},
// {{name|base64}} and {{name|json}} encode it. {{repeat x 129}} and {{time +1h}} compute a
// value. Predefined variables are base, host, token, run (unique to this run) and ns (an
// organization unique to this conversation and case).
//
// In an expected body or header, {{name}} must equal a variable that is set, and captures
// the value of one that is not set. A placeholder may be a part of a string; a placeholder
// that is the whole string captures the JSON value with its type.
//
// # Bodies
//
// An expected JSON body is a subset: objects may have more fields than expected, lists
// must match element by element. Strings may be matchers:
//
//	"{{any}}"       anything but null      "{{absent}}"     the key must be absent
//	"{{string}}"    a non-empty string     "{{number}}"     a number
//	"{{bool}}"      a boolean              "{{time}}"       an RFC 3339 time
//	"{{object}}"    an object              "{{array}}"      a list
//	"{{re EXPR}}"   a string or number that matches the whole expression
//
// A list whose first element is "{{contains}}" requires that each further element matches
// some element; "{{unordered}}" that they match all elements in any order; "{{lacks}}" that
// none of them matches any element, also if the list itself is absent. Outside strings,
// {{name}} is replaced by a variable's JSON value.
//
// # Directives
//
// Directives are lines that begin with @ at the start of a request or response:
//
//	@retry 10s      repeat the request until the response is as expected
//	@again STEP 10s when the response is not as expected, repeat from STEP, for at
//	                most that time
//	@timeout 5s     timeout of one request (default 30s)
//	@raw NAME       the body is the saved body NAME, byte for byte
//	@exact          objects must not have more fields than expected
//	@body KIND      kind of the expected body: json (the default when it begins
//	                like JSON), yaml, stream (a sequence of JSON values, extra
//	                ones allowed between), text (the whole body, placeholders
//	                allowed), contains (the body contains each line), prefix (a
//	                quoted Go string that the body begins with), empty
//	@save NAME      save the body as it is
//
// # Includes
//
// A file named "include FILE" is replaced by the steps of FILE, which is in the folder of
// the conversation.
//
// # Cases
//
// A file named "cases" contains one JSON object per line; the conversation runs once for
// each, with the object's members as variables. "cases FILE" reads them from a file in the
// folder of the conversation. Each case has a "case" member with its name.
package contract
