// An organization's metrics, asked for every few seconds and kept for a while, as
// numbers and as plots.
import { html } from './html.js'
import { get } from './api.js'
import { poll } from './watch.js'
import { emit, on, update } from './store.js'
import { absolute, short } from './format.js'

/** Parses the text format: a list of {name, labels, value}. */
export function parseMetrics(text) {
  const out = []
  for (const line of text.split('\n')) {
    const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)/.exec(line)
    if (!m) continue
    const labels = {}
    for (const l of (m[2] ?? '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[l[1]] = l[2].replace(/\\n/g, '\n').replace(/\\(.)/g, '$1')
    out.push({ name: m[1], labels, value: Number(m[3]) })
  }
  return out
}

/** Growth per second between samples; a counter that began again is 0. */
export const rates = (times, values) => values.map((v, i) => i === 0 || v == null || values[i - 1] == null ? null : Math.max(0, v - values[i - 1]) / Math.max(.001, times[i] - times[i - 1]))

const keep = 150

/** Follows the metrics of an organization. */
export function metricsOf(ctx, every = 2000) {
  const s = { times: [], byName: new Map(), error: null, ready: false, total: name => sum(s, name) }
  poll(async () => {
    if (s.error?.status === 403) return
    try {
      const list = parseMetrics(await get(`/system/v1alpha1/metrics?organization=${encodeURIComponent(ctx.org)}`, { accept: 'text/plain', background: true, signal: ctx.signal }))
      s.error = null
      s.times.push(Date.now() / 1000)
      for (const all of s.byName.values()) for (const values of all.values()) values.push(0)
      for (const { name, labels, value } of list) {
        if (!/^freshet_(namespace|quota|messaging)/.test(name)) continue
        if (!s.byName.has(name)) s.byName.set(name, new Map())
        const all = s.byName.get(name), key = labels.cluster ?? labels.resource ?? ''
        if (!all.has(key)) all.set(key, Array(s.times.length).fill(0))
        all.get(key)[s.times.length - 1] += value
      }
      if (s.times.length > keep) { s.times.shift(); for (const all of s.byName.values()) for (const v of all.values()) v.shift() }
      s.ready = s.times.length > 1
    } catch (e) {
      if (e.name !== 'AbortError') s.error = e
    }
    update()
    emit('metrics')
  }, every, ctx.signal)
  return s
}

/** Values of all clusters together, over time. */
function sum(s, name) {
  const all = [...(s.byName.get(name)?.values() ?? [])]
  return s.times.map((_, i) => all.reduce((n, v) => n + (v[i] ?? 0), 0))
}

/** <live-plot .data=${{series, name, unit}}>: uPlot, loaded when first needed. */
class LivePlot extends HTMLElement {
  connectedCallback() {
    this.leaving = new AbortController()
    on('metrics', () => this.draw(), this.leaving.signal)
    on('theme', () => { this.plot?.destroy(); this.plot = null; this.draw() }, this.leaving.signal)
    this.sized = new ResizeObserver(() => this.plot?.setSize({ width: this.clientWidth, height: 180 }))
    this.sized.observe(this)
    this.draw()
  }

  disconnectedCallback() { this.leaving.abort(); this.sized.disconnect(); this.plot?.destroy(); this.plot = null }
  set data(d) { this.now = d }

  async draw() {
    const { series: s, name, unit } = this.now
    const all = s.byName.get(name) ?? new Map()
    const keys = [...all.keys()].sort().slice(0, 6)
    const data = [s.times, ...keys.map(k => unit.endsWith('/s') ? rates(s.times, all.get(k)) : all.get(k))]
    if (!keys.length) data.push(s.times.map(() => 0))
    if (this.plot && this.keys === keys.join()) { this.plot.setData(data); return }
    if (!LivePlot.lib) {
      const sheet = document.createElement('link')
      Object.assign(sheet, { rel: 'stylesheet', href: new URL('../vendor/uPlot.min.css', import.meta.url).href })
      document.head.append(sheet)
      LivePlot.lib = import('../vendor/uPlot.esm.js')
    }
    const { default: uPlot } = await LivePlot.lib
    if (!this.isConnected) return
    this.plot?.destroy()
    const css = getComputedStyle(document.documentElement), colour = n => css.getPropertyValue(n).trim()
    const strokes = ['--accent', '--info', '--warn', '--ok', '--bad', '--muted'].map(colour)
    const axis = { stroke: colour('--muted'), grid: { stroke: colour('--line'), width: 1 }, ticks: { show: false }, font: '11px system-ui', gap: 6 }
    this.keys = keys.join()
    this.plot = new uPlot({
      width: this.clientWidth, height: 180, cursor: { y: false }, legend: { live: true }, padding: [10, 8, 0, 0],
      scales: { y: { range: (u, min, max) => [0, Math.max(max * 1.1, 1)] } },
      axes: [{ ...axis, space: 80, values: (u, list) => list.map(t => absolute(t * 1000).slice(11)) }, { ...axis, size: 52, values: (u, list) => list.map(short) }],
      series: [{ label: 'Time', value: (u, t) => t == null ? '–' : absolute(t * 1000).slice(11) }, ...(keys.length ? keys : ['nothing yet']).map((k, i) => ({ label: k || 'all', stroke: strokes[i], width: 1.6, points: { show: false }, value: (u, v) => v == null ? '–' : `${short(v)} ${unit}`, ...(keys.length < 2 && { fill: strokes[i] + '22' }) }))],
    }, data, this)
  }
}
customElements.define('live-plot', LivePlot)

export const plotOf = (series, name, unit) => html`<live-plot .data=${{ series, name, unit }}></live-plot>`
