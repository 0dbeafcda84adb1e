// The way in: people at the server's own page, service accounts with their
// credentials, and whoever runs the server with its token.
import { html, nothing } from './html.js'
import { peopleSignIn, session, signOut, withClient, withServer, withToken } from './session.js'
import { whoAmI } from './api.js'
import { logo, icon } from './icons.js'
import { dropZone, field } from './widgets.js'
import { update } from './store.js'

const form = { way: '', id: '', secret: '', token: '', keep: false, busy: false, error: '', people: undefined }

/** What to show first, once the server has said whom it lets in. */
export async function prepare(error) {
  if (error) form.error = error
  form.people = await peopleSignIn()
  form.way ||= form.people ? 'person' : 'file'
  update()
}

async function run(f) {
  form.busy = true
  form.error = ''
  update()
  const before = session.who?.principal
  try {
    await f()
    const who = await whoAmI()
    if (before && before !== who.principal) location.assign('/console/') // another person: nothing of the page stays
    Object.assign(form, { id: '', secret: '', token: '' })
  } catch (e) {
    form.error = e.message
    if (session.active && !session.expired) signOut()
  }
  form.busy = false
  update()
}

function takeFile(text) {
  try {
    const c = JSON.parse(text)
    if (!c.client_id || !c.client_secret) throw new Error('client_id and client_secret are missing')
    run(() => withClient(c.client_id, c.client_secret, form.keep))
  } catch (e) {
    form.error = `This is no credentials file: ${e.message}.`
    update()
  }
}

const ways = () => [form.people && ['person', 'Person'], ['file', 'Service account'], ['token', 'Token']].filter(Boolean)

const panels = {
  person: () => html`<p class="muted">You sign in on the page of this server: with a password, a passkey, or by the provider that it is configured for.</p>
    <button class="primary wide" type="button" ?disabled=${form.busy || !isSecureContext} @click=${() => run(() => withServer())}>Continue to sign in</button>`,
  file: () => html`${dropZone('Drop the credentials file here, or choose it', '.json,application/json', takeFile)}
    <div class="or"><span>or</span></div>
    <form class="stack" @submit=${e => { e.preventDefault(); run(() => withClient(form.id, form.secret, form.keep)) }}>
      ${field('Client ID', html`<input name="client_id" required autocomplete="off" spellcheck="false" .value=${form.id} @input=${e => { form.id = e.target.value }}>`)}
      ${field('Client secret', html`<input name="client_secret" type="password" required autocomplete="off" .value=${form.secret} @input=${e => { form.secret = e.target.value }}>`)}
      <button class="primary wide" ?disabled=${form.busy}>${form.busy ? 'Signing in…' : 'Sign in'}</button></form>`,
  token: () => html`<form class="stack" @submit=${e => { e.preventDefault(); run(() => withToken(form.token, form.keep)) }}>
      ${field('Access token', html`<input name="token" type="password" required autocomplete="off" .value=${form.token} @input=${e => { form.token = e.target.value }}>`, html`On the machine of the server: the file <code>admin.token</code> of its data directory.`)}
      <button class="primary wide" ?disabled=${form.busy}>${form.busy ? 'Signing in…' : 'Sign in'}</button></form>`,
}

const box = again => html`
  <div class="signin-box">
    <div class="signin-head">${again ? icon('clock', 28) : logo(40)}<h1>${again ? 'Sign in again' : 'Sign in to Freshet'}</h1>
      <p class="muted">${again ? html`The session of ${session.who?.principal ?? 'before'} has ended. The page behind is as you left it, and goes on afterwards.` : location.host}</p></div>
    ${isSecureContext ? nothing : html`<p class="callout warn">This page did not come over HTTPS, so the browser allows no cryptography: people cannot sign in and API keys cannot be made here. Open the HTTPS address, or localhost.</p>`}
    ${form.error ? html`<p class="callout bad" role="alert">${form.error}</p>` : nothing}
    ${ways().length > 1 ? html`<div class="seg fill" role="group" aria-label="How to sign in">${ways().map(([id, text]) => html`<button type="button" aria-pressed=${form.way === id} @click=${() => { form.way = id; form.error = ''; update() }}>${text}</button>`)}</div>` : nothing}
    ${panels[form.way]?.() ?? nothing}
    ${form.way === 'person' ? nothing : html`<label class="check"><input type="checkbox" .checked=${form.keep} @change=${e => { form.keep = e.target.checked }}> Keep for this tab <small>survives a reload, ends with the tab</small></label>`}
    ${again ? html`<button type="button" class="link" @click=${signOut}>Sign out instead</button>` : nothing}
  </div>`

export const signIn = () => html`<main class="signin">${box(false)}</main>`
export const signInAgain = () => html`<div class="signin over" role="dialog" aria-modal="true" aria-label="Sign in again">${box(true)}</div>`
