// What /metrics says, as numbers: rates between two readings, and percentiles of what happened between them.
"use strict";

// Samples by name: [{labels, value}]. Comments and lines it cannot read are left out.
function parseMetrics(text) {
  const samples = new Map();
  const line = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
  const label = /(\w+)="((?:[^"\\]|\\.)*)"/g;
  for (const row of text.split("\n")) {
    const match = row[0] === "#" ? null : line.exec(row);
    if (!match) continue;
    const labels = Object.fromEntries(Array.from((match[2] ?? "").matchAll(label), (m) => [m[1], m[2]]));
    const sample = {labels, value: Number(match[3].replace("Inf", "Infinity"))};
    if (samples.has(match[1])) samples.get(match[1]).push(sample);
    else samples.set(match[1], [sample]);
  }
  return samples;
}

class Reading {
  constructor(text, at) {
    this.samples = parseMetrics(text);
    this.at = at; // seconds
  }
  // The sum over all samples of a name; null when there is none.
  value(name) {
    const found = this.samples.get(name);
    return found ? found.reduce((sum, sample) => sum + sample.value, 0) : null;
  }
  mean(name) {
    const sum = this.value(name);
    return sum === null ? null : sum / this.samples.get(name).length;
  }
  // Counts up to each bound.
  buckets(name) {
    return (this.samples.get(`${name}_bucket`) ?? []).map(({labels, value}) => ({
      bound: labels.le === "+Inf" ? Infinity : Number(labels.le),
      count: value,
    }));
  }
  // Tokens as [layer][expert]; empty where the server does not count them.
  experts() {
    const layers = [];
    for (const {labels, value} of this.samples.get("gauntlet:expert_tokens_total") ?? []) {
      (layers[Number(labels.layer)] ??= [])[Number(labels.expert)] = value;
    }
    return layers;
  }
}

// What happened from one reading to a later one. A counter that fell belongs to a server that started anew.
class Span {
  constructor(from, to) {
    this.from = from;
    this.to = to;
  }
  grown(name) {
    const before = this.from.value(name);
    const after = this.to.value(name);
    return before === null || after === null || after < before ? null : after - before;
  }
  rate(name) {
    const grown = this.grown(name);
    const seconds = this.to.at - this.from.at;
    return grown === null || seconds <= 0 ? null : grown / seconds;
  }
  ratio(part, whole) {
    const of = this.grown(whole);
    return of ? this.grown(part) / of : null;
  }
  // Within its bucket a value is taken to lie where an even spread would put it.
  quantile(name, q) {
    const before = this.from.buckets(name);
    const counts = this.to.buckets(name).map(({bound, count}, i) => ({
      bound,
      count: count - (before[i]?.count ?? 0),
    }));
    const total = counts.at(-1)?.count ?? 0;
    if (!(total > 0)) return null;
    const rank = q * total;
    const at = counts.findIndex(({count}) => count >= rank);
    const low = at > 0 ? counts[at - 1] : {bound: 0, count: 0};
    const {bound, count} = counts[at];
    if (bound === Infinity) return low.bound;
    return low.bound + ((bound - low.bound) * (rank - low.count)) / (count - low.count || 1);
  }
  // Each expert's tokens over the mean of its layer; null while a layer has none.
  expertLoad() {
    const before = this.from.experts();
    const layers = this.to
      .experts()
      .map((experts, layer) => experts.map((count, e) => count - (before[layer]?.[e] ?? 0)));
    const load = layers.map((counts) => {
      const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
      return mean > 0 ? counts.map((count) => count / mean) : null;
    });
    return load.length && load.every(Boolean) ? load : null;
  }
}
