// Do Kubernetes' published schemas take every manifest, and know every field in it?
import assert from "node:assert/strict";
import {readFileSync, readdirSync} from "node:fs";
import {createRequire} from "node:module";
import {dirname, join} from "node:path";
import {test} from "node:test";
import {parseAllDocuments} from "yaml";

const require = createRequire(import.meta.url);
const schemas = join(dirname(require.resolve("kubernetes-models")), "_schemas");
const folder = new URL("../../deploy/kubernetes/", import.meta.url);

const capital = (word) => word[0].toUpperCase() + word.slice(1);
// apps/v1 Deployment -> IoK8sApiAppsV1Deployment
function validatorOf({apiVersion, kind}) {
  const [version, group = "core"] = apiVersion.split("/").reverse();
  return require(join(schemas, `IoK8sApi${capital(group)}${capital(version)}${kind}.js`)).validate;
}

// A validator lets unknown fields pass, but it never looks at them: what it does not read, no schema has.
function watched(value, path, unread) {
  if (value === null || typeof value !== "object") return value;
  const inner = new Map(
    Object.entries(value).map(([key, one]) => [key, watched(one, `${path}/${key}`, unread)]),
  );
  if (!Array.isArray(value)) for (const key of inner.keys()) unread.add(`${path}/${key}`);
  return new Proxy(value, {
    get(target, key) {
      unread.delete(`${path}/${String(key)}`);
      return inner.get(key) ?? Reflect.get(target, key);
    },
  });
}
function faultsOf(manifest) {
  const validate = validatorOf(manifest);
  const unread = new Set();
  validate(watched(manifest, "", unread));
  const faults = (validate.errors ?? []).map((error) => `${error.instancePath}: ${error.keyword}`);
  return [...faults, ...[...unread].map((path) => `${path}: unknown`)];
}

const manifests = readdirSync(folder)
  .filter((name) => name.endsWith(".yaml"))
  .flatMap((name) => parseAllDocuments(readFileSync(new URL(name, folder), "utf8")))
  .map((document) => {
    assert.deepEqual(document.errors, []);
    return document.toJS();
  });
const find = (kind, name = "gauntlet") =>
  structuredClone(manifests.find((one) => one.kind === kind && one.metadata.name === name));

test("every manifest is what its schema says", () => {
  assert.deepEqual(manifests.map(({kind}) => kind).sort(), [
    "ConfigMap",
    "ConfigMap",
    "Deployment",
    "HorizontalPodAutoscaler",
    "PodDisruptionBudget",
    "Service",
    "Service",
    "StatefulSet",
  ]);
  for (const manifest of manifests) assert.deepEqual(faultsOf(manifest), [], manifest.kind);
});

test("the schemas would find a slip", () => {
  const deployment = find("Deployment");
  const [container] = deployment.spec.template.spec.containers;
  container.readinesProbe = container.readinessProbe;
  container.livenessProbe.periodSeconds = "10";
  delete container.name;
  delete deployment.spec.selector;
  const faults = faultsOf(deployment).join("\n");
  for (const fault of [/readinesProbe: unknown/, /periodSeconds: type/, /containers\/0: required/, /spec: required/])
    assert.match(faults, fault);
});

test("parts of the deployment agree with one another", () => {
  const {spec} = find("Deployment");
  const pod = spec.template;
  const [container] = pod.spec.containers;
  const labels = pod.metadata.labels;
  for (const selector of [
    spec.selector.matchLabels,
    find("Service").spec.selector,
    find("PodDisruptionBudget").spec.selector.matchLabels,
  ])
    for (const [key, value] of Object.entries(selector)) assert.equal(labels[key], value);
  assert.equal(find("HorizontalPodAutoscaler").spec.scaleTargetRef.name, find("Deployment").metadata.name);
  const ports = container.ports.map(({name}) => name);
  for (const port of find("Service").spec.ports) assert.ok(ports.includes(port.targetPort));
  for (const probe of ["startupProbe", "livenessProbe", "readinessProbe"])
    assert.ok(ports.includes(container[probe].httpGet.port), probe);
  const volumes = pod.spec.volumes.map(({name}) => name);
  for (const {name} of container.volumeMounts) assert.ok(volumes.includes(name), name);
  // Guaranteed: only then does the kubelet give whole cores of one NUMA node.
  assert.deepEqual(container.resources.requests, container.resources.limits);
  assert.match(container.resources.limits.cpu, /^\d+$/);
  const toml = find("ConfigMap").data["serve.toml"];
  const drain = Number(/drain-timeout = (\d+)/.exec(toml)[1]);
  const [, wait] = container.lifecycle.preStop.exec.command;
  assert.ok(pod.spec.terminationGracePeriodSeconds > drain + Number(wait));
  assert.equal(Number(/port = (\d+)/.exec(toml)[1]), container.ports[0].containerPort);
});

test("parts of the ranks' set agree with one another", () => {
  const {spec} = find("StatefulSet", "gauntlet-ranks");
  const pod = spec.template;
  const [container] = pod.spec.containers;
  for (const selector of [spec.selector.matchLabels, find("Service", "gauntlet-ranks").spec.selector])
    for (const [key, value] of Object.entries(selector)) assert.equal(pod.metadata.labels[key], value);
  assert.equal(spec.serviceName, find("Service", "gauntlet-ranks").metadata.name);
  // Ranks are as many as the mesh has, and their threads as many as the CPUs.
  const {data} = find("ConfigMap", "gauntlet-ranks");
  const toml = data["serve.toml"];
  const ranks = Number(container.command[container.command.indexOf("-n") + 1]);
  assert.equal(Number(/mesh = "tp(\d+)"/.exec(toml)[1]), ranks);
  const threads = Number(/threads = (\d+)/.exec(toml)[1]);
  assert.equal(Number(container.resources.limits.cpu), ranks * threads);
  assert.deepEqual(container.resources.requests, container.resources.limits);
  const drain = Number(/drain-timeout = (\d+)/.exec(toml)[1]);
  assert.ok(pod.spec.terminationGracePeriodSeconds > drain);
  const mounts = Object.fromEntries(container.volumeMounts.map(({name, mountPath}) => [name, mountPath]));
  assert.deepEqual(Object.keys(mounts).sort(), pod.spec.volumes.map(({name}) => name).sort());
  const config = container.command[container.command.indexOf("--config") + 1];
  const [, script] = container.lifecycle.preStop.exec.command;
  for (const file of [config, script])
    assert.ok(data[file.replace(`${mounts.configuration}/`, "")], `${file} is in the map`);
  assert.equal(container.env.find(({name}) => name === "TMPDIR").value, mounts.session);
  assert.equal(mounts["shared-memory"], "/dev/shm");
  assert.equal(Number(/port = (\d+)/.exec(toml)[1]), container.ports[0].containerPort);
});

test("the drain script tells rank 0 alone, and waits for it", async () => {
  // Jobs of others on this machine are none of this test's.
  const variable = `RANK_OF_TEST_${process.pid}`;
  const script = find("ConfigMap", "gauntlet-ranks").data["drain.sh"].replace("OMPI_COMM_WORLD_RANK", variable);
  const {spawn} = await import("node:child_process");
  const start = (rank) =>
    spawn("/bin/sh", ["-c", "trap 'sleep 1; exit 7' TERM; while :; do sleep 0.1; done"], {
      env: {...process.env, [variable]: String(rank)},
    });
  const ranks = [start(0), start(1)];
  const ended = new Promise((resolve) => ranks[0].on("exit", resolve));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const begin = Date.now();
  const draining = spawn("/bin/sh", ["-c", script], {stdio: "ignore"});
  const drained = new Promise((resolve) => draining.on("exit", resolve));
  assert.equal(await ended, 7);
  assert.equal(await drained, 0);
  assert.ok(Date.now() - begin >= 900);
  assert.equal(ranks[1].exitCode, null);
  ranks[1].kill("SIGKILL");
});
