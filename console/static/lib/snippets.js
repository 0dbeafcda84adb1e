// A recorded request as commands and programs. None of them contains the token; they
// read the environment variable TOKEN.
import { freshet } from './freshetcommand.js'
import { compactJSON, parseResource, quote, withKind } from './requests.js'

/**
 * @param {{method: string, url: string, body?: string|null, contentType?: string, headers?: object,
 *   whole?: boolean}} r
 */
export function curl(r) {
  if (r.command) return r.command
  const parts = ['curl --fail-with-body -sS']
  if (r.method !== 'GET') parts.push(`-X ${r.method}`)
  parts.push('-H "Authorization: Bearer $TOKEN"')
  if (r.contentType) parts.push(`-H ${quote('Content-Type: ' + r.contentType)}`)
  for (const [name, value] of Object.entries(r.headers ?? {})) parts.push(`-H ${quote(name + ': ' + value)}`)
  if (r.body != null) {
    parts.push(r.whole === false ? '--data-binary @body' : `--data-binary ${quote(compactJSON(r.body))}`)
  }
  const noBuffer = /[?&]watch=true/.test(r.url) ? '-N ' : ''
  parts.push(`${noBuffer}"$FRESHET_SERVER"${quote(r.url)}`)
  return parts.join(' \\\n  ')
}

/** @returns {string} "" if kubectl has no such command */
export function kubectl(r) {
  const p = parseResource(r.url)
  if (!p) return r.method === 'GET' ? `kubectl get --raw ${quote(r.url)}` : ''
  const allNamespaces = p.plural === 'clusterroles' ? '' : ' -A'
  const namespace = p.org ? ` -n ${quote(p.org)}` : allNamespaces
  const target = p.plural + (p.name ? ' ' + quote(p.name) : '')
  const dryRun = p.query.get('dryRun') ? ' --dry-run=server' : ''
  const fromInput = verb => `kubectl ${verb}${namespace}${dryRun} -f - <<'END'\n${withKind(r.body, p.plural)}\nEND`
  switch (r.method) {
    case 'GET': {
      const selector = p.query.get('fieldSelector')
      const fieldSelector = selector ? ` --field-selector ${quote(selector)}` : ''
      return `kubectl get ${target}${namespace}${fieldSelector}${p.query.get('watch') ? ' -w' : ''}`
    }
    case 'POST':
      return p.name ? '' : fromInput('create')
    case 'PUT':
      return fromInput('replace')
    case 'PATCH':
      return `kubectl patch ${target}${namespace}${dryRun} --type=merge -p ${quote(compactJSON(r.body ?? '{}'))}`
    case 'DELETE': {
      const cascade = p.query.get('propagationPolicy') === 'Foreground' ? ' --cascade=foreground' : ''
      return `kubectl delete ${target}${namespace}${cascade}`
    }
  }
  return ''
}

const headersOf = r => Object.entries({ ...(r.contentType && { 'Content-Type': r.contentType }), ...r.headers })
const literal = s => JSON.stringify(String(s)) // a valid literal in Go and in Python too
const rawLiteral = s => s.includes('`') || s.includes('\r') ? literal(s) : '`' + s + '`'

const checkError = `\tif err != nil {
\t\tlog.Fatal(err)
\t}
`

/** The Go statement that defines the body; "" without a body. */
function goBody(r) {
  if (r.body == null) return ''
  if (r.whole === false) return `\tbody, err := os.Open("body")\n${checkError}`
  return `\tbody := ${rawLiteral(compactJSON(r.body))}\n`
}

/** A complete program in Go that uses only the standard library. */
export function golang(r) {
  if (r.command) return ''
  const reader = r.body == null ? 'nil' : r.whole === false ? 'body' : 'strings.NewReader(body)'
  const imports = ['io', 'log', 'net/http', 'os', ...(reader === 'strings.NewReader(body)' ? ['strings'] : [])]
  const headers = headersOf(r).map(([k, v]) => `\treq.Header.Set(${literal(k)}, ${literal(v)})\n`)
  return `package main

import (
${imports.map(i => `\t${literal(i)}\n`).join('')})

func main() {
${goBody(r)}\turl := os.Getenv("FRESHET_SERVER") + ${literal(r.url)}
\treq, err := http.NewRequest(${literal(r.method)}, url, ${reader})
${checkError}\treq.Header.Set("Authorization", "Bearer "+os.Getenv("TOKEN"))
${headers.join('')}\tres, err := http.DefaultClient.Do(req)
${checkError}\tdefer res.Body.Close()
\tif _, err := io.Copy(os.Stdout, res.Body); err != nil {
\t\tlog.Fatal(err)
\t}
\tif res.StatusCode >= 400 {
\t\tlog.Fatal(res.Status)
\t}
}`
}

/** The Python argument that sets the body; "" without a body. */
function pythonBody(r) {
  if (r.body == null) return ''
  if (r.whole === false) return '    data=open("body", "rb").read(),\n'
  return `    data=${literal(compactJSON(r.body))}.encode(),\n`
}

/** A complete program in Python 3 that uses only the standard library. */
export function python(r) {
  if (r.command) return ''
  const headers = headersOf(r).map(([k, v]) => `        ${literal(k)}: ${literal(v)},\n`)
  return `import os, sys, urllib.error, urllib.request

request = urllib.request.Request(
    os.environ["FRESHET_SERVER"] + ${literal(r.url)},
    method=${literal(r.method)},
${pythonBody(r)}    headers={
        "Authorization": "Bearer " + os.environ["TOKEN"],
${headers.join('')}    },
)
try:
    with urllib.request.urlopen(request) as response:
        for line in response:
            print(line.decode(), end="", flush=True)
except urllib.error.HTTPError as error:
    sys.exit(f"{error.code} {error.read().decode()}")`
}

/** All snippets of a request as [name, text]. */
export const snippets = r => [
  ['curl', curl(r)],
  ['kubectl', kubectl(r)],
  ['freshet', freshet(r)],
  ['Go', golang(r)],
  ['Python', python(r)],
].filter(([, text]) => text)
