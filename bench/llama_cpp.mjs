// Gauntlet beside llama.cpp: the same GGUF files on the same cores in one run, the two engines
// alternating in blocks (ours, theirs, theirs, ours) because machines drift while they are measured.
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = dirname(fileURLToPath(import.meta.url));
const libraries = join(here, "node_modules/@node-llama-cpp/linux-x64/bins/linux-x64");
const usage = `node bench/llama_cpp.mjs [--gauntlet FILE] [--blocks N] [--only NAME] [--json FILE]
  --gauntlet  the program to measure (default: build/release/gauntlet)
  --blocks    of four processes each, at least 2 (default: 5)
  --only      tiny or wide (default: both)
  --json      also write every sample there`;

/** What is measured. Tests of a scenario share a process. */
const scenarios = [
  {
    name: "tiny",
    title: "gauntlet-tiny",
    convert: ["gauntlet-tiny"],
    threads: [1, 2],
    prefill: [512],
    decode: 128,
    repetitions: 8,
  },
  {
    name: "wide",
    title: "gpt-oss-20b width, 4 layers, random",
    convert: ["--weights", "random", "--shape", "gpt-oss-20b", "--layers", "4"],
    threads: [2],
    prefill: [64, 256],
    decode: 16,
    repetitions: 3,
  },
];

function fail(message) {
  console.error(`llama_cpp.mjs: ${message}`);
  process.exit(2);
}

function allowedCpus() {
  const list = /^Cpus_allowed_list:\s*(.*)$/m.exec(readFileSync("/proc/self/status", "utf8"))[1];
  return list.split(",").flatMap((range) => {
    const [first, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}

function show(text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}

function run(program, args, threads) {
  const cpus = allowedCpus().slice(0, threads).join(",");
  const options = { encoding: "utf8", maxBuffer: 1 << 26, stdio: ["ignore", "pipe", "inherit"] };
  return JSON.parse(execFileSync("taskset", ["-c", cpus, program, ...args], options));
}

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return (sorted[(sorted.length - 1) >> 1] + sorted[sorted.length >> 1]) / 2;
};

/** 95% interval of a positive quantity that varies by factors: Student's over its logarithms. */
function interval(values) {
  const student = [12.71, 4.3, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
  const logs = values.map(Math.log);
  const mean = logs.reduce((a, b) => a + b) / logs.length;
  const variance = logs.reduce((sum, x) => sum + (x - mean) ** 2, 0) / (logs.length - 1);
  const half = (student[logs.length - 2] ?? 2.1) * Math.sqrt(variance / logs.length);
  return { middle: Math.exp(mean), lo: Math.exp(mean - half), hi: Math.exp(mean + half) };
}

/** One process of ours: {"decode 128 f32": {speed, bytes, percent, boundBy}, ...}. */
function measureOurs(gauntlet, file, scenario, threads) {
  const report = run(gauntlet, [
    "bench", "--model", file, "--threads", threads, "--activations", "f32,auto",
    "--prefill", scenario.prefill.join(","), "--decode", scenario.decode,
    "--repetitions", scenario.repetitions, "--seconds", 0, "--format", "json",
  ].map(String), threads);
  return new Map(report.rows.map((row) => [
    `${row.test} ${row.tokens} ${row.activations}`,
    { speed: row.tok_s.value, bytes: row.bytes_per_token, percent: row.percent_of_limit,
      boundBy: row.bound_by, readFrom: report.limits.read_from, readGbS: report.limits.read_gb_s },
  ]));
}

/** One process of theirs: {"decode 128": {speed}, ...}. */
function measureTheirs(driver, file, scenario, threads) {
  const tests = [...scenario.prefill.map((n) => `prefill:${n}`), `decode:${scenario.decode}`];
  const report = run(driver, [libraries, file, threads, scenario.repetitions, ...tests].map(String),
    threads);
  return new Map(report.tests.map((test) => [`${test.test} ${test.tokens}`,
    { speed: median(test.tok_s), system: report.system }]));
}

function measure(scenario, threads, { gauntlet, driver, file, blocks }) {
  const done = [];
  for (let block = 0; block < blocks; ++block) {
    const ours = [], theirs = [];
    for (const side of "ABBA") {
      show(`${scenario.title}, ${threads} threads: block ${block + 1} of ${blocks}, ` +
        (side === "A" ? "gauntlet" : "llama.cpp"));
      if (side === "A") ours.push(measureOurs(gauntlet, file, scenario, threads));
      else theirs.push(measureTheirs(driver, file, scenario, threads));
    }
    done.push({ ours, theirs });
  }
  show("");
  return done;
}

/** A row per test and activation mode of ours. */
function rowsOf(scenario, threads, blocks) {
  return [...blocks[0].ours[0].keys()].map((key) => {
    const [test, tokens, activations] = key.split(" ");
    const sides = blocks.map(({ ours, theirs }) => ({
      ours: ours.map((run) => run.get(key).speed),
      theirs: theirs.map((run) => run.get(`${test} ${tokens}`).speed),
    }));
    const sum = ([a, b]) => a + b;
    const own = blocks.flatMap(({ ours }) => ours.map((run) => run.get(key)));
    const theirs = median(sides.flatMap((side) => side.theirs));
    const [{ bytes, boundBy, readFrom, readGbS }] = own;
    return {
      model: scenario.title, threads, test, tokens: Number(tokens), activations,
      ours: median(sides.flatMap((side) => side.ours)), theirs,
      ratio: interval(sides.map((side) => sum(side.ours) / sum(side.theirs))),
      percent: median(own.map((one) => one.percent)), boundBy, readFrom, readGbS, bytes,
      samples: sides,
    };
  });
}

function table(rows) {
  const head = ["model", "threads", "test", "our activations", "gauntlet tok/s",
    "llama.cpp tok/s (int8)", "ratio (95%)", "our % of limit", "our % of read bandwidth"];
  const share = (speed, row) => ((100 * speed * row.bytes) / (row.readGbS * 1e9)).toFixed(0);
  const cells = rows.map((row) => [
    row.model, row.threads, `${row.test} ${row.tokens}`, row.activations, row.ours.toFixed(1),
    row.theirs.toFixed(1),
    `${row.ratio.middle.toFixed(2)} (${row.ratio.lo.toFixed(2)} to ${row.ratio.hi.toFixed(2)})`,
    `${row.percent.toFixed(0)} (${row.boundBy})`,
    row.test === "decode" ? `${share(row.ours, row)} of ${row.readGbS.toFixed(1)} GB/s (${row.readFrom})` : "",
  ].map(String));
  const widths = head.map((title, i) => Math.max(title.length, ...cells.map((c) => c[i].length)));
  const line = (row) => `| ${row.map((cell, i) => cell.padEnd(widths[i])).join(" | ")} |`;
  return [line(head), `|${widths.map((w) => "-".repeat(w + 2)).join("|")}|`, ...cells.map(line)]
    .join("\n");
}

const release = () => JSON.parse(readFileSync(join(libraries, "_nlcBuildMetadata.json")))
  .buildOptions.llamaCpp.release;

/** What pages quote, with where it comes from. */
function record(rows, gauntlet) {
  const cpu = /^model name\s*:\s*(.*)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1];
  return `${JSON.stringify({
    command: ["node", "bench/llama_cpp.mjs", ...process.argv.slice(2)],
    machine: `${allowedCpus().length} cores of ${cpu ?? "an unknown CPU"}`,
    version: execFileSync(gauntlet, ["--version"], { encoding: "utf8" }).trim(),
    llama_cpp: release(),
    rows,
  }, null, 1)}\n`;
}

const { values: options } = parseArgs({
  options: {
    gauntlet: { type: "string", default: join(here, "../build/release/gauntlet") },
    blocks: { type: "string", default: "5" },
    only: { type: "string" },
    json: { type: "string" },
    help: { type: "boolean", default: false },
  },
});
if (options.help) {
  console.log(usage);
  process.exit(0);
}
const blocks = Number(options.blocks);
const chosen = scenarios.filter(({ name }) => !options.only || name === options.only);
if (!existsSync(options.gauntlet)) fail(`there is no ${options.gauntlet}: build it (make), or give --gauntlet`);
if (!existsSync(libraries)) fail(`llama.cpp is not installed: npm ci --prefix ${here}`);
if (!(blocks >= 2)) fail("--blocks is at least 2");
if (chosen.length === 0) fail("--only is tiny or wide");

const gauntlet = resolve(options.gauntlet);
const folder = mkdtempSync(join(tmpdir(), "gauntlet-bench-"));
process.env.XDG_CACHE_HOME = folder;  // ceilings of this run, beside those the user keeps
try {
  const driver = join(folder, "llama_cpp_speed");
  execFileSync("c++", ["-std=c++20", "-O2", join(here, "llama_cpp_speed.cc"), "-o", driver, "-ldl"]);
  show("measuring what this machine can do");
  execFileSync(gauntlet, ["roofline", "--backend", "cpu"], { stdio: "ignore" });
  const rows = [];
  for (const scenario of chosen) {
    const file = join(folder, `${scenario.name}.gguf`);
    execFileSync(gauntlet, ["convert", ...scenario.convert, file], { stdio: ["ignore", "ignore", "inherit"] });
    for (const threads of scenario.threads.filter((n) => n <= allowedCpus().length)) {
      const done = measure(scenario, threads, { gauntlet, driver, file, blocks });
      rows.push(...rowsOf(scenario, threads, done));
    }
    rmSync(file);
  }
  console.log(table(rows));
  console.log(`\nllama.cpp ${release()}, its own C API without JavaScript, flash attention, batch 2048, ` +
    "micro-batch 512, a kept thread pool; all logits and no sampling on its side, the likeliest token on ours.\n" +
    `Each figure is a median over ${2 * blocks} processes, each ratio of ${blocks} ABBA blocks.`);
  if (options.json) writeFileSync(options.json, record(rows, gauntlet));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
