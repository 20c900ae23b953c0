/** `opt-run --hosts` over two hosts, which are this machine behind an agent that stands for ssh. */
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { type Launcher, runJob } from "../../parallel/testing/job";
import { IMPORTS, launchers, type NamedLauncher } from "../testing/launchers";

const folder = mkdtempSync(join(tmpdir(), "opt-hosts-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const source = (file: string) => new URL(`../../${file}`, import.meta.url).href;
const imports = `${IMPORTS}
import { DataParallel, FullyShardedDataParallel } from "${source("parallel/src/index.ts")}";
import { loadCheckpoint, saveCheckpoint } from "${source("checkpoint/src/index.ts")}";
import { SGD } from "${source("optimizers/sgd/src/index.ts")}";
import { Linear } from "${source("nn/src/index.ts")}";`;

function script(path: string, text: string): string {
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** As ssh: options, the host, the command. A host whose file is there does not answer. */
const agent = script(
  join(folder, "agent"),
  `while :; do case "$1" in -*) shift ;; *) break ;; esac; done
host=$1; shift
[ -e ${folder}/down-$host ] && exit 255
export OPT_TEST_HOST=$host
exec sh -c "$*"`,
);

/** opt-run with this launcher of MPI as the only mpirun. */
function overHosts({ name, launcher }: NamedLauncher, hosts: string, ...options: string[]): Launcher {
  const { command, args } = launcher(1, "");
  const real = spawnSync("sh", ["-c", `command -v ${command}`], { encoding: "utf8" }).stdout.trim();
  const path = mkdtempSync(join(folder, "path-"));
  script(join(path, "mpirun"), `exec ${real} ${args.slice(0, -4).join(" ")} "$@"`);
  const agents: Record<string, string> =
    name === "MPICH"
      ? { HYDRA_LAUNCHER_EXEC: agent }
      : { OMPI_MCA_plm_rsh_agent: agent, OMPI_MCA_btl: "tcp,self", OMPI_MCA_btl_tcp_if_include: "lo" };
  return (_, program) => ({
    command: process.execPath,
    args: [join(dirname(program), "cli.mjs"), "--hosts", hosts, ...options, program],
    env: { PATH: `${path}:${process.env.PATH}`, OPT_TEST_VALUE: "of the launcher", ...agents },
  });
}

/** Trains on the rows of a batch that are this rank's; loads and saves each step. */
const train = (path: string) => `
const { rank, size } = communicator;
const model = new Linear(4, 2, { generator: new core.Generator(1) });
const parallel = new DataParallel(model, communicator);
const optimizer = new SGD(model.namedParameters(), { lr: 0.1 });
const path = ${JSON.stringify(path)};
const loaded = await loadCheckpoint(path).catch((error) => error.code === "MISSING" ? null : Promise.reject(error));
if (loaded) model.loadStateDict(loaded.tensors);
const layout = { mesh: { shape: [size], axes: ["rank"] }, tensors: { "*": "replicate" } };
for (let step = (loaded?.step ?? 0) + 1; step <= 4; step++) {
  const x = core.randn([8, 4], { generator: new core.Generator(step) }).slice((8 / size) * rank, (8 / size) * (rank + 1));
  parallel.forward(x).pow(2).mean().backward();
  await parallel.sync();
  optimizer.step();
  optimizer.zeroGrad();
  await saveCheckpoint(path, { step, tensors: model.stateDict() }, { communicator, layout });
  if (typeof afterStep === "function") await afterStep(step);
}
tell([size, loaded?.step ?? 0, [...model.weight.dataSync()]]);`;

describe.each(launchers)("$name over two hosts", (own) => {
  const { missing } = own;

  it.skipIf(missing)(
    `DDP and FSDP have the words of one machine, and ranks the environment${missing ?? ""}`,
    async () => {
      const body = `${train("")
        .replaceAll(/.*(loadCheckpoint|saveCheckpoint|loadStateDict).*\n/g, "")
        .replaceAll("loaded?.step ?? 0", "0")
        .replace(/tell\(.*/, "")}
      const whole = new Linear(4, 2, { generator: new core.Generator(1) });
      const divided = new FullyShardedDataParallel(whole, communicator);
      divided.forward(core.ones([2, 4])).pow(2).sum().backward();
      await divided.sync();
      const norm = core.clipGradNorm(divided.parameters(), 1).dataSync()[0];
      tell([process.env.OPT_TEST_VALUE, size, norm, [...model.weight.dataSync()]]);`;
      const launcher = overHosts(own, "localhost:2,b:2", "--no-prefix");
      const { code, told, error } = await runJob(4, body, { imports, launcher, patience: 60_000 });
      expect([code, error]).toEqual([0, ""]);
      const local = await runJob(4, body, { imports });
      expect(told).toHaveLength(4);
      for (const [rank, each] of told.entries()) {
        expect(each).toEqual(["of the launcher", ...(local.told[rank] as unknown[]).slice(1)]);
      }
    },
  );

  it.skipIf(missing)(`a host that dies is named, and the job goes on on the other one${missing ?? ""}`, async () => {
    const path = mkdtempSync(join(folder, "run-"));
    const down = JSON.stringify(`${path}/../down-b`);
    // With the second host ends everything that runs on it.
    const kill = `
      const { readdirSync, readFileSync, writeFileSync, existsSync } = await import("node:fs");
      const afterStep = async (step) => {
        if (step !== 2 || existsSync(${down})) return;
        await communicator.barrier();
        if (rank !== 3) return sleep(1e5);
        writeFileSync(${down}, "");
        const isThere = (pid) => { try { return readFileSync(\`/proc/\${pid}/environ\`, "utf8").includes("OPT_TEST_HOST=b"); } catch { return false; } };
        for (const pid of readdirSync("/proc").filter((name) => /^\\d+$/.test(name) && name !== String(process.pid)).filter(isThere))
          try { process.kill(Number(pid), "SIGKILL"); } catch {}
        process.kill(process.pid, "SIGKILL");
      };`;
    const launcher = overHosts(own, "localhost:2,b:2", "--no-prefix", "--restarts", "2", "--min-ranks", "2");
    const { code, told, error } = await runJob(4, `${kill}${train(path)}`, { imports, launcher, patience: 60_000 });
    expect(error).toMatch(/no answer from b: 2 ranks are left; restart 1 of 2/);
    expect(code).toBe(0);
    rmSync(`${folder}/down-b`);
    const [[, , right]] = (await runJob(1, train(mkdtempSync(join(folder, "run-"))), { imports })).told as [
      [0, 0, number[]],
    ];
    expect(told).toHaveLength(2);
    for (const [size, from, weights] of told as [number, number, number[]][]) {
      expect([size, from]).toEqual([2, 2]);
      for (const [i, value] of weights.entries()) expect(value).toBeCloseTo(right[i]!, 6);
    }
  });

  it.skipIf(missing)(`with too few ranks left the job is over${missing ?? ""}`, async () => {
    writeFileSync(`${folder}/down-c`, "");
    const launcher = overHosts(own, "localhost:1,c:1", "--restarts", "3");
    const { code, error } = await runJob(2, "", { imports, launcher, patience: 60_000 });
    expect(error).toMatch(/no answer from c: 1 ranks are left, --min-ranks is 2; the job is over\n$/);
    expect(code).not.toBe(0);
  });

  it.skipIf(missing)(`lines get their rank${missing ?? ""}`, async () => {
    const launcher = overHosts(own, "localhost:1,b:1");
    const body = `console.log("one\\ntwo"); console.error("three");`;
    const { out, error } = await runJob(2, body, { imports, launcher, patience: 60_000 });
    expect(out.trim().split("\n").sort()).toEqual(["[0] one", "[0] two", "[1] one", "[1] two"]);
    expect(error.trim().split("\n").sort()).toEqual(["[0] three", "[1] three"]);
  });
});
