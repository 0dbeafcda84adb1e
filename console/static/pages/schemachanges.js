// Compatibility of schemas: levels, errors of the registry, and changes between versions.
import { html, nothing } from '../lib/html.js'
import { copyText } from '../lib/copy.js'
import { badge } from '../lib/widgets.js'

/** The compatibility levels, and what they check. */
export const levels = {
  BACKWARD: 'New schemas can read data written with the previous version. Upgrade consumers first.',
  FORWARD: 'The previous version can read data written with new schemas. Upgrade producers first.',
  FULL: 'New schemas and the previous version can read each other’s data.',
  NONE: 'Only the syntax is checked.',
  BACKWARD_TRANSITIVE: 'New schemas can read data written with all earlier versions. Upgrade consumers first.',
  FORWARD_TRANSITIVE: 'All earlier versions can read data written with new schemas. Upgrade producers first.',
  FULL_TRANSITIVE: 'New schemas and all earlier versions can read each other’s data.',
  ALWAYS_INCOMPATIBLE: 'New versions are rejected.',
}

/** Error codes of the registry: what failed and what to do next. */
const errorTexts = {
  409: 'The subject’s compatibility level does not allow this change. Change the schema, or the level.',
  40404: 'The subject is already soft-deleted. The second step deletes it permanently.',
  40405: 'The subject is not soft-deleted yet. Soft-delete it before you delete it permanently.',
  40406: 'The version is already soft-deleted. The second step deletes it permanently.',
  40407: 'The version is not soft-deleted yet. Soft-delete it before you delete it permanently.',
  42201: 'The schema or one of its references is invalid.',
  42205: 'The mode of the registry does not allow this operation.',
  42206: 'Other schemas refer to it, and could not be read without it. Delete them first: they are listed under ' +
    '“Referenced by”.',
  42208: 'Subjects have 1 to 249 letters, digits, dots, dashes and underscores.',
}

/** An error of the registry with its code. */
export function registryError(e) {
  if (!e) return nothing
  const code = e.code ? html`Error code <code>${e.code}</code>` : `${e.status}`
  const request = e.requestId ? html` · request ${copyText(e.requestId)}` : nothing
  return html`
    <div class="callout bad" role="alert">
      <div>
        <b>${errorTexts[e.code] ?? e.advice}</b>
        <p>${e.message}</p>
        <p class="muted small">${code}${request}</p>
      </div>
    </div>`
}

/** Extracts the reasons {type, text} from the messages of a compatibility check. */
export function reasons(messages = []) {
  return messages.map(m => {
    const type = /errorType:\s*['"]([^'"]*)['"]/.exec(m)?.[1]
    const text = /description:\s*(?:'((?:[^']|'(?!,))*)'|"((?:[^"\\]|\\.)*)")/s.exec(m)
    return type ? { type, text: text?.[1] ?? text?.[2] ?? m } : null
  }).filter(Boolean)
}

const registryMessages = messages => html`
  <details class="more">
    <summary class="muted small">Messages of the registry</summary>
    <pre class="wrap">${messages.join('\n')}</pre>
  </details>`

/** The result of a compatibility check. */
export function verdictView(verdict) {
  const list = reasons(verdict.messages)
  const text = verdict.is_compatible
    ? 'Compatible: the schema can be registered.'
    : 'Not compatible: the registry would reject the schema.'
  return html`
    <div class="callout ${verdict.is_compatible ? 'ok' : 'bad'}" role="status">
      <div>
        <b>${text}</b>
        ${list.length ? html`<ul>${list.map(r => html`<li><code>${r.type}</code> ${r.text}</li>`)}</ul>` : nothing}
        ${verdict.messages?.length ? registryMessages(verdict.messages) : nothing}
      </div>
    </div>`
}

/** Requests the changes between two schemas, under the cluster's path or else under the registry's path. */
export async function compareSchemas({ client, path }, from, to, o) {
  const request = url => client.call('POST', url, { body: { from, to }, ...o }).then(r => r.data)
  try {
    return await request(`${client.root}/registry/v1alpha1/diff`)
  } catch (e) {
    if (e.status !== 404 || e.code > 404) throw e
    return request(path('/registry/v1alpha1/diff'))
  }
}

const directionBadge = (name, { compatible, problems }) => {
  const text = compatible ? `${name} compatible` : `Not ${name.toLowerCase()} compatible`
  return badge(compatible ? 'ok' : 'bad', text, problems?.join('\n'))
}

const changeRow = c => html`
  <tr class=${c.compatible ? '' : 'breaks'}>
    <td>${badge(c.compatible ? 'ok' : 'bad', c.type.toLowerCase().replace(/_/g, ' '))}</td>
    <td><code>${c.path || '/'}</code></td>
    <td>${c.text}</td>
  </tr>`

const changeTable = changes => html`
  <div class="scroll-x" tabindex="0" role="region" aria-label="Changes">
    <table class="changes">
      <thead><tr><th>Change</th><th>Path</th><th>Effect</th></tr></thead>
      <tbody>${changes.map(changeRow)}</tbody>
    </table>
  </div>`

/** The changes between two schemas, and their effects, as the server reports them. */
export function changesView({ changes, backward, forward, levels: allowing }) {
  const problems = [...(backward.problems ?? []), ...(forward.problems ?? [])]
  const names = allowing.map((level, i) => html`${i ? ', ' : ''}<code>${level}</code>`)
  return html`
    <div class="stack">
      <div class="cluster">
        ${changes.length ? nothing : badge('', 'No change')}
        ${directionBadge('Backward', backward)}
        ${directionBadge('Forward', forward)}
      </div>
      ${changes.length ? changeTable(changes) : nothing}
      <p class="muted small">${allowing.length
        ? html`These compatibility levels allow the change: ${names}.`
        : 'No compatibility level allows the change.'}</p>
      ${problems.length ? registryMessages(problems) : nothing}
    </div>`
}
