// One subject: versions, what changed between two of them, its level, and its end in
// two steps.
import { html, nothing } from '../lib/html.js'
import { go, link, route, setQuery } from '../lib/router.js'
import { update } from '../lib/store.js'
import { frame, modal, toast } from '../lib/dialog.js'
import { diffView, textDiff } from '../lib/diff.js'
import { icon } from '../lib/icons.js'
import { badge, button, codeBlock, copyText, denied, download, empty, facts, failure, field, heading, loading, tabOf, tabs } from '../lib/widgets.js'
import { input, select } from '../lib/objects.js'
import { asked, form, shownOr } from '../lib/plane.js'
import { indented } from './topicsettings.js'
import { place } from './schemas.js'

export const levels = {
  BACKWARD: 'The new version reads what the last one wrote: consumers go first', FORWARD: 'The last version reads what the new one writes: producers go first', FULL: 'Both ways', NONE: 'Nothing is checked but the format',
  BACKWARD_TRANSITIVE: 'The new version reads what any earlier one wrote', FORWARD_TRANSITIVE: 'Every earlier version reads what the new one writes', FULL_TRANSITIVE: 'Both ways, with every earlier version', ALWAYS_INCOMPATIBLE: 'No new version is taken',
}

/** Codes of the registry in words, and what can be done. */
export const codes = {
  409: 'The subject’s level does not allow this change. Change the schema, or the level.',
  40404: 'The subject is soft-deleted already. The second step deletes it for good.',
  40405: 'The first step is missing: a subject is soft-deleted before it is deleted for good.',
  40406: 'The version is soft-deleted already. The second step deletes it for good.',
  40407: 'The first step is missing: a version is soft-deleted before it is deleted for good.',
  42201: 'The schema, or what it refers to, is not valid.',
  42205: 'The mode of the registry does not allow it.',
  42206: 'Other schemas refer to it, and could not be read without it. Delete those first: they are under “Referenced by”.',
  42208: 'Subjects have 1 to 249 letters, digits, dots, dashes and underscores.',
}
export const refusal = e => e ? html`<div class="callout bad" role="alert"><div><b>${codes[e.code] ?? e.advice}</b><p>${e.message}</p><p class="muted small">${e.code ? html`Error code <code>${e.code}</code>` : `${e.status}`}${e.requestId ? html` · request ${copyText(e.requestId)}` : nothing}</p></div></div>` : nothing

/** Reasons out of the texts of a compatibility check. */
export function reasons(messages = []) {
  return messages.map(m => { const type = /errorType:\s*['"]([^'"]*)['"]/.exec(m)?.[1], text = /description:\s*(?:'((?:[^']|'(?!,))*)'|"((?:[^"\\]|\\.)*)")/s.exec(m); return type ? { type, text: text?.[1] ?? text?.[2] ?? m } : null }).filter(Boolean)
}

const verdictView = v => v.error ? refusal(v.error) : html`<div class="callout ${v.is_compatible ? 'ok' : 'bad'}" role="status"><div><b>${v.is_compatible ? 'It can be registered: compatible.' : 'It would be refused: not compatible.'}</b>
  ${reasons(v.messages).length ? html`<ul>${reasons(v.messages).map(r => html`<li><code>${r.type}</code> ${r.text}</li>`)}</ul>` : nothing}
  ${v.messages?.length ? html`<details class="more"><summary class="muted small">The registry’s own words</summary><pre class="wrap">${v.messages.join('\n')}</pre></details>` : nothing}</div></div>`

const examples = { AVRO: '{\n  "type": "record",\n  "name": "Order",\n  "fields": [\n    {"name": "id", "type": "string"},\n    {"name": "amount", "type": "double"}\n  ]\n}', JSON: '{\n  "type": "object",\n  "properties": {\n    "id": {"type": "string"}\n  },\n  "required": ["id"]\n}', PROTOBUF: 'syntax = "proto3";\n\nmessage Order {\n  string id = 1;\n  double amount = 2;\n}' }

/** Writes a schema, checks it, sees what it changes, registers it. */
export async function register(ctx, subject, done, latest) {
  const { at } = ctx
  const v = { subject, type: latest?.schemaType ?? 'AVRO', text: latest ? indented(latest.schema) : examples.AVRO, refs: (latest?.references ?? []).map(r => `${r.name} ${r.subject} ${r.version}`).join('\n'), verdict: null, diff: null, error: null, busy: '' }
  const references = () => v.refs.split('\n').filter(l => l.trim()).map(l => { const [name, sub, version] = l.trim().split(/\s+/); if (!version) throw new Error(`A reference is “name subject version”: ${l}`); return { name, subject: sub, version: Number(version) } })
  const body = () => ({ schema: v.text, ...(v.type !== 'AVRO' && { schemaType: v.type }), ...(v.refs.trim() && { references: references() }) })
  const check = async ctl => {
    v.busy = 'check'
    v.verdict = v.diff = v.error = null
    ctl.update()
    try {
      v.verdict = (await at.call('POST', ctx.path('/compatibility/subjects/*/versions?verbose=true', v.subject), { body: body() })).data
      v.diff = await compare(ctx, { subject: v.subject, version: 'latest' }, { subject: v.subject, ...body() }, { background: true }).catch(() => null)
    } catch (e) { v.error = e }
    v.busy = ''
    ctl.update()
  }
  const save = async ctl => {
    v.busy = 'save'
    v.error = null
    ctl.update()
    try {
      const { data } = await at.call('POST', ctx.path('/subjects/*/versions', v.subject), { body: body() })
      toast(`Registered with id ${data.id}.`)
      done?.()
      ctl.close(true)
      go(link(ctx.org, 'schemas', [at.name, v.subject]))
    } catch (e) { v.error = e; v.busy = ''; ctl.update() }
  }
  return modal(ctl => frame(ctl, latest ? `New version of ${subject}` : 'Register a schema', html`<div class="stack">
    <div class="fields">${latest ? nothing : field('Subject', input(v, 'subject', ctl, { required: true, autofocus: !subject, maxlength: 249, placeholder: 'orders-value' }))}
    ${field('Type', html`<select name="type" @change=${e => { const was = v.type; v.type = e.target.value; if (v.text === examples[was]) v.text = examples[v.type]; v.verdict = null; ctl.update() }}>${Object.keys(examples).map(x => html`<option ?selected=${x === v.type}>${x}</option>`)}</select>`)}</div>
    ${field('Schema', html`<textarea name="schema" rows="13" spellcheck="false" .value=${v.text} @input=${e => { v.text = e.target.value; v.verdict = null }}></textarea>`)}
    <details class="more" ?open=${!!v.refs}><summary class="muted small">References to other subjects</summary>${field('One a line: name subject version', html`<textarea name="references" rows="2" spellcheck="false" .value=${v.refs} @input=${e => { v.refs = e.target.value }}></textarea>`)}</details>
    ${v.error ? v.error.status !== undefined ? html`${refusal(v.error)}` : html`<p class="callout bad">${v.error.message}</p>` : nothing}
    ${v.verdict ? verdictView(v.verdict) : nothing}${v.diff ? changesView(v.diff) : nothing}</div>`,
  html`<button type="button" @click=${() => ctl.close()}>Cancel</button><button type="button" ?disabled=${!!v.busy || !v.subject} @click=${() => check(ctl)}>${v.busy === 'check' ? 'Checking…' : 'Check'}</button><button class="primary" ?disabled=${!!v.busy || !v.subject}>${v.busy === 'save' ? 'Registering…' : 'Register'}</button>`,
  { submit: () => save(ctl) }), { className: 'wide-box' })
}

const compare = (ctx, from, to, o) => ctx.at.call('POST', `${ctx.at.root}/registry/v1alpha1/diff`, { body: { from, to }, ...o }).then(r => r.data).catch(e => {
  if (e.status !== 404 || e.code > 404) throw e
  return ctx.at.call('POST', ctx.path('/registry/v1alpha1/diff'), { body: { from, to }, ...o }).then(r => r.data)
})

/** Every change and what it means, as the server sees it. */
export const changesView = d => html`<div class="stack">
  <div class="cluster">${d.changes.length ? nothing : badge('', 'No change')}${badge(d.backward.compatible ? 'ok' : 'bad', d.backward.compatible ? 'New readers read old data' : 'Breaks new readers of old data', d.backward.problems?.join('\n'))}${badge(d.forward.compatible ? 'ok' : 'bad', d.forward.compatible ? 'Old readers read new data' : 'Breaks old readers of new data', d.forward.problems?.join('\n'))}</div>
  ${d.changes.length ? html`<div class="scroll-x" tabindex="0" role="region" aria-label="Changes"><table class="changes"><thead><tr><th>Change</th><th>Where</th><th>What it means</th></tr></thead><tbody>${d.changes.map(c => html`<tr class=${c.compatible ? '' : 'breaks'}><td>${badge(c.compatible ? 'ok' : 'bad', c.type.toLowerCase().replace(/_/g, ' '))}</td><td><code>${c.path || '/'}</code></td><td>${c.text}</td></tr>`)}</tbody></table></div>` : nothing}
  <p class="muted small">${d.levels.length ? html`It could follow under ${d.levels.map((l, i) => html`${i ? ', ' : ''}<code>${l}</code>`)}.` : 'It could follow under no level.'}</p>
  ${[...new Set([...(d.backward.problems ?? []), ...(d.forward.problems ?? [])])].length ? html`<details class="more"><summary class="muted small">The registry’s own words</summary><pre class="wrap">${[...(d.backward.problems ?? []), ...(d.forward.problems ?? [])].join('\n')}</pre></details>` : nothing}</div>`

export function detail(ctx) {
  const { at, org } = ctx
  const subject = ctx.names[1]
  const crumbs = [['Schemas', link(org, 'schemas', [at.name])]]
  const all = asked(async () => {
    const [active, every, config] = await Promise.all([
      at.get(ctx.path('/subjects/*/versions', subject)).catch(e => { if (e.code === 40401) return []; throw e }),
      at.get(ctx.path('/subjects/*/versions?deleted=true', subject), { background: true }), at.get(ctx.path('/config/*', subject), { background: true })])
    const alive = new Set(active)
    return { versions: every.map(n => ({ n, deleted: !alive.has(n) })).reverse(), gone: !active.length, level: config.compatibilityLevel }
  })
  all.again()
  const texts = new Map() // version → what asked() made
  const textOf = n => {
    if (!texts.has(n)) {
      const a = asked(async () => {
        const s = await at.get(ctx.path('/subjects/*/versions/*?deleted=true', subject, n), { background: true })
        const users = await at.get(ctx.path('/subjects/*/versions/*/referencedby?deleted=true', subject, n), { background: true }).catch(() => [])
        const by = (await Promise.all(users.slice(0, 20).map(id => at.get(ctx.path('/schemas/ids/*/versions?deleted=true', id), { background: true }).catch(() => [])))).flat()
        return { ...s, by }
      })
      texts.set(n, a)
      a.again()
    }
    return texts.get(n)
  }
  const again = () => { texts.clear(); diffKey = ''; return all.again() }
  let diffKey = '', diff = null
  const between = (from, to) => {
    const key = `${from} ${to}`
    if (diffKey === key) return diff
    diffKey = key
    diff = { busy: true }
    const read = n => at.get(ctx.path('/subjects/*/versions/*?deleted=true', subject, n), { background: true })
    Promise.all([compare(ctx, { subject, version: from }, { subject, version: to }).catch(e => ({ error: e })), read(from), read(to)])
      .then(async ([d, a, b]) => { const text = await textDiff(indented(a.schema), indented(b.schema), 4); if (diffKey === key) diff = { d, text } }, e => { diff = { error: e } }).finally(update)
    return diff
  }
  const setLevel = () => form({
    title: `Level of ${subject}`, values: { level: all.data.level }, action: 'Set',
    view: (v, ctl) => html`${field('Level', select(v, 'level', ctl, Object.keys(levels).map(l => [l])), levels[v.level])}<p class="muted small">The global level always reads <code>NONE</code> and means nothing: this one is what counts.</p>`,
    run: async v => { await at.call('PUT', ctx.path('/config/*', subject), { body: { compatibility: v.level } }); toast(`${subject} is checked as ${v.level}.`); all.again() },
  })
  // The end in two steps, of a version or of all.
  const remove = version => {
    const soft = version ? all.data.versions.find(x => x.n === version).deleted : all.data.gone
    const what = version ? `version ${version}` : subject
    const url = permanent => ctx.path(`/subjects/*${version ? `/versions/${version}` : ''}${permanent ? '?permanent=true' : ''}`, subject)
    let typed = '', error = null, busy = false, step = soft ? 2 : 1
    const run = async ctl => {
      busy = true
      error = null
      ctl.update()
      try {
        await at.call('DELETE', url(step === 2))
        toast(step === 2 ? `${what} is deleted for good.` : `${what} is soft-deleted.`)
        if (step === 2 && (!version || all.data.versions.length === 1)) { ctl.close(); go(link(org, 'schemas', [at.name])); return }
        await again()
        if (step === 2) { ctl.close(); setQuery({ v: '' }); return }
        step = 2
      } catch (e) { error = e }
      busy = false
      ctl.update()
    }
    return modal(ctl => frame(ctl, `Delete ${what}`, html`<div class="stack"><ol class="two-steps"><li class=${step === 2 ? 'ok' : 'now'}><b>Soft delete</b><p>It disappears from lists and is not checked against any more. Consumers still read it by its id.</p></li>
      <li class=${step === 2 ? 'now' : ''}><b>Delete for good</b><p>Records written with it can no longer be read by those who do not have it. It cannot be undone.</p></li></ol>
      ${step === 2 ? field(html`Type <b class="mono">${subject}</b> to delete for good`, html`<input name="typed" autocomplete="off" spellcheck="false" @input=${e => { typed = e.target.value; ctl.update() }}>`) : nothing}${refusal(error)}</div>`,
    html`<button type="button" @click=${() => ctl.close()}>${step === 2 ? 'Leave it soft-deleted' : 'Cancel'}</button><button class="danger" ?disabled=${busy || step === 2 && typed !== subject}>${busy ? 'Working…' : step === 2 ? 'Delete for good' : 'Soft delete'}</button>`,
    { submit: () => run(ctl) }))
  }
  const views = () => [['versions', 'Versions', all.data?.versions.length], ['diff', 'Compare']]
  const versionsView = d => {
    const n = d.versions.find(x => x.n === Number(route.query.get('v')))?.n ?? d.versions[0].n
    const deleted = d.versions.find(x => x.n === n).deleted
    return html`<div class="grid"><section class="card c3"><h2>Versions</h2><div class="rows-list picks-list">${d.versions.map(x => html`<a class="plain ${x.deleted ? 'ended' : ''}" href=${link(org, 'schemas', route.names, { v: x.n })} aria-current=${x.n === n ? 'true' : nothing} @click=${e => { e.preventDefault(); setQuery({ v: x.n }) }}><b>Version ${x.n}</b><span class="spacer"></span>${x.deleted ? badge('bad', 'Soft-deleted') : x.n === d.versions.find(y => !y.deleted)?.n ? badge('ok', 'Latest') : nothing}</a>`)}</div></section>
      <section class="card c6 wide-c stack">${shownOr(textOf(n), 'this version', 'schema.subjects.describe', s => html`<header class="cluster"><h2>Version ${n}</h2>${deleted ? badge('bad', 'Soft-deleted') : nothing}<span class="spacer"></span><button @click=${() => download(`${subject}-${n}.${s.schemaType === 'PROTOBUF' ? 'proto' : 'json'}`, s.schema)}>${icon('down', 16)}Download</button>${button('Delete version', { icon: 'trash', kind: 'danger', permission: 'schema.subjects.delete', onclick: () => remove(n) })}</header>
        ${facts([['Id', html`<a href=${link(org, 'schemas', [at.name], { id: s.id })}>${copyText(s.id)}</a>`], ['Type', s.schemaType ?? 'AVRO'], ['Refers to', s.references?.length ? s.references.map(r => html`<a href=${link(org, 'schemas', [at.name, r.subject], { v: r.version })} title=${r.name}>${r.subject} ${r.version}</a> `) : 'nothing'], ['Referenced by', s.by.length ? s.by.map(r => html`<a href=${link(org, 'schemas', [at.name, r.subject], { v: r.version })}>${r.subject} ${r.version}</a> `) : 'nothing']])}
        ${codeBlock(indented(s.schema), 'Schema')}`, loading(4))}</section></div>`
  }
  const compareView = d => {
    if (d.versions.length < 2) return empty({ icon: 'schemas', title: 'There is one version only', text: 'With a second one you see here what changed and whom it breaks.' })
    const numbers = d.versions.map(x => x.n), pick = (key, otherwise) => numbers.includes(Number(route.query.get(key))) ? Number(route.query.get(key)) : otherwise
    const from = pick('from', numbers[1]), to = pick('to', numbers[0])
    const chooser = (key, now, label) => html`<label class="inline-select"><span class="muted small">${label}</span><select aria-label=${label} @change=${e => setQuery({ [key]: e.target.value })}>${numbers.map(n => html`<option value=${n} ?selected=${n === now}>version ${n}</option>`)}</select></label>`
    const x = between(from, to)
    return html`<div class="stack"><div class="cluster">${chooser('from', from, 'from')}${icon('chevron', 16)}${chooser('to', to, 'to')}<button class="ghost" aria-label="Swap" title="Swap" @click=${() => setQuery({ from: to, to: from })}>⇄</button></div>
      ${x.busy ? loading(4) : x.error ? failure(x.error) : html`<section class="card stack"><h2>What it means</h2>${x.d.error ? failure(x.d.error) : changesView(x.d)}${!x.d.error && !x.d.levels.includes(d.level) ? html`<p class="callout bad"><span>The level of this subject, <code>${d.level}</code>, would refuse it.</span></p>` : nothing}</section><section class="card stack"><h2>Text</h2>${diffView(x.text)}</section>`}</div>`
  }
  return () => {
    if (all.state === 'denied') return html`${heading({ title: subject, crumbs })}${denied('this subject', all.error, 'schema.subjects.describe')}`
    if (all.state === 'gone') return html`${heading({ title: subject, crumbs })}${empty({ icon: 'schemas', title: 'There is no such subject', text: 'It may have been deleted for good.', href: link(org, 'schemas', [at.name]), more: 'All subjects' })}`
    return html`${heading({
      title: subject, crumbs, badge: all.data?.gone ? badge('bad', 'Soft-deleted') : nothing, sub: html`In ${place(subject)}. ${all.data ? html`Checked as <b>${all.data.level}</b>: ${(levels[all.data.level] ?? '').replace(/^./, c => c.toLowerCase())}.` : nothing}`,
      actions: all.data ? html`${button('Level', { icon: 'edit', permission: 'schema.subjects.update', onclick: setLevel })}${button('Delete', { icon: 'trash', kind: 'danger', permission: 'schema.subjects.delete', onclick: () => remove(0) })}${button('New version', { kind: 'primary', icon: 'plus', permission: 'schema.subjects.create', onclick: async () => { const a = textOf(all.data.versions[0].n); if (a.state === 'loading') await a.again(); register(ctx, subject, again, a.data) } })}` : nothing,
    })}${shownOr(all, 'this subject', 'schema.subjects.describe', d => html`${tabs(views())}${tabOf(views()) === 'diff' ? compareView(d) : versionsView(d)}`, loading(6))}`
  }
}
