/**
 * Checkpoints beside raw input and output, torch.save, torch DCP and safetensors, on the same bytes and interleaved in one run: only
 * ratios mean something. What each has written is read back and compared before anything is timed.
 *
 * Loading is dominated by memory: a page that is new to a process costs several times what copying into it does. So both sides load into
 * memory of one kind: new (each in a process of its own that has loaded nothing yet), reused (what was loaded before has been freed:
 * `dispose`, `del`), or that of a model which is there. The bound is on new and on reused memory.
 *
 * What a virtual machine's host has taken back costs ten times more again, at random: before new memory is measured, another process has
 * just had and left as much.
 *
 * Before each timed run of either side what it reads is in the page cache, which some machines clear of files after half a minute, and the
 * disk has nothing left to write, of what was removed either.
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build } from "esbuild";
import { planningSeconds } from "./checkpoint-plan";

const HELP = `OPT_TORCH_PYTHON=<python with torch> tsx --conditions=@opt/source tools/bench/checkpoint/checkpoint.ts [options]
  --mib <n>       size of the checkpoint (default 512: 128 tensors of 1024 x 1024 f32)
  --rounds <n>    interleaved rounds (default 7)
  --few <n>       rounds of 100,000 small tensors on 4 ranks (default 3)
  --only <regex>  time only works whose names it matches (all are run once, to be compared)
  --device <name> where tensors are loaded to (default: the best there is)
  --folder <dir>  where to write (default runs/bench)
  --out <file>    JSON report (default runs/bench/checkpoint.json)
safetensors takes part when that Python has it.`;

const { values: options } = parseArgs({
  options: {
    mib: { type: "string", default: "512" },
    rounds: { type: "string", default: "7" },
    few: { type: "string", default: "3" },
    only: { type: "string", default: "" },
    device: { type: "string" },
    folder: { type: "string", default: "runs/bench" },
    out: { type: "string", default: "runs/bench/checkpoint.json" },
    help: { type: "boolean", default: false },
  },
});
const python = process.env.OPT_TORCH_PYTHON;
if (options.help || !python) {
  console.log(HELP);
  process.exit(options.help ? 0 : 2);
}

const only = new RegExp(options.only);

interface Session {
  ask(request: object): Promise<Answer>;
  close(): void;
}

interface Answer {
  readonly error?: string;
  readonly works?: readonly string[];
  readonly torch?: string;
  readonly device?: string;
  readonly isEqual?: boolean;
  readonly milliseconds: number;
  /** Processor time of all threads, in milliseconds: what a busy machine changes least. */
  readonly cpu: number;
  /** MiB beyond what the process held before. */
  readonly peak: number;
}

function session(command: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Session {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"], env: { ...process.env, ...env } });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async ask(request) {
      child.stdin.write(`${JSON.stringify(request)}\n`);
      const { value, done } = await answers.next();
      if (done) throw new Error(`${command} ended`);
      const answer = JSON.parse(value) as Answer;
      if (answer.error !== undefined) throw new Error(answer.error);
      return answer;
    },
    close: () => child.stdin.end(),
  };
}

const LEAVE = `
import mmap
memory = mmap.mmap(-1, ${3 * Number(options.mib) * 2 ** 20}, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_HUGEPAGE)
for at in range(0, len(memory), 4096): memory[at] = 1`;

/** The machine has memory that nobody uses, in pages of any size. */
function leaveMemory(): void {
  spawnSync(python!, ["-S", "-c", LEAVE], { stdio: "inherit" });
}

/** MiB that may still wait to be written: other programs write, too. */
const SETTLED = 16;

function unwritten(): number {
  const memory = readFileSync("/proc/meminfo", "utf8");
  const kib = (field: string) => Number(new RegExp(`^${field}:\\s+(\\d+)`, "m").exec(memory)![1]);
  return (kib("Dirty") + kib("Writeback")) / 1024;
}

/** The disk rests. */
async function settle(): Promise<void> {
  spawnSync("sync", { stdio: "inherit" });
  for (let i = 0; i < 20 && unwritten() > SETTLED; i++) await setTimeout(100);
  await setTimeout(200); // blocks of removed files are discarded after the journal says so
}

/** Milliseconds that all processors have worked since the machine began, for whomever. */
function busy(): number {
  const [, user, nice, system, , , irq, softirq] = readFileSync("/proc/stat", "utf8").split(/\s+/).map(Number);
  return 10 * (user! + nice! + system! + irq! + softirq!);
}

/** Of all timed runs together, in milliseconds. */
const during = { wall: 0, others: 0 };

/** One timed run of a work, after what it writes was removed, what it reads was read, and the machine has settled. */
async function timed(who: Session, name: string, isFresh = false): Promise<Answer> {
  await who.ask({ command: "prepare", name });
  await settle();
  if (isFresh) leaveMemory();
  const before = busy();
  const answer = await who.ask({ command: "run", name });
  during.wall += answer.milliseconds;
  during.others += busy() - before - answer.cpu;
  return answer;
}

mkdirSync(options.folder, { recursive: true });
const folder = mkdtempSync(join(resolve(options.folder), "checkpoint-"));
// Where the device's package is found: without it the session would take another device, and no test would say so.
const workspace = fileURLToPath(new URL("../../../runs/", import.meta.url));
mkdirSync(workspace, { recursive: true });
const program = join(mkdtempSync(join(workspace, "session-")), "session.mjs");
await build({
  entryPoints: [new URL("./checkpoint-session.ts", import.meta.url).pathname],
  bundle: true,
  platform: "node",
  format: "esm",
  conditions: ["@opt/source"],
  external: ["h5wasm"],
  outfile: program,
  // Some libraries still call require.
  banner: { js: 'import { createRequire as make } from "node:module"; const require = make(import.meta.url);' },
  logLevel: "error",
});

const SMALL = "100,000 tensors";
/** In the order of a round: who writes what another work reads comes first. */
const OURS = [
  ...["raw write + fsync", "save", "save, 4 ranks"],
  ...[
    "raw read",
    "load as Tensors, reused memory",
    "load as Tensors, no checksums",
    "load into Tensors",
    "load, 4 ranks",
    "verify",
    "merge",
    "reshard 4 to 2",
  ],
];
const OURS_SMALL = [`${SMALL}, 4 ranks: save`, `${SMALL}, 4 ranks: load`, `${SMALL}: reshard 4 to 3`];
const ASYNC = "async save, until it returns";
/** What loads in a process of its own, under its name there. */
const NEW = { ours: "load as Tensors", theirs: "safetensors load_file, copied" };
/** Keeps what is freed, whatever its size: without it the C library gives some of it back. */
const REUSE = { MALLOC_MMAP_THRESHOLD_: `${32 << 20}`, MALLOC_TRIM_THRESHOLD_: `${2 ** 40}` };
/** Memory that is new to the process costs a fault for each page, twice the copy itself: both copies get the one kind, or the other. */
const KINDS: readonly { copy: string; kind: string; env: Readonly<Record<string, string>> }[] = [
  { copy: "memory copy, fresh", kind: "fresh", env: { MALLOC_MMAP_THRESHOLD_: "65536" } },
  { copy: "memory copy, warm", kind: "warm", env: REUSE },
];
/** What others wrote and we can read. */
const CHECKED = ["one", "four", "two", "merged.safetensors", "torch.pt", "dcp", "st.safetensors"];

const results = new Map<string, Answer[]>();
const opened: Session[] = [];
try {
  const source = join(folder, "source.pt");
  const theirProgram = new URL("./checkpoint_session.py", import.meta.url).pathname;
  const theirs = session(python, [theirProgram]);
  const ours = session(process.execPath, ["--expose-gc", program]);
  opened.push(theirs, ours);
  const count = Math.ceil(Number(options.mib) / 4);
  const { works = [], torch } = await theirs.ask({ command: "open", folder, count, source });
  const device = options.device ? { device: options.device } : {};
  const { device: used } = await ours.ask({ command: "open", folder, source, ...device });
  rmSync(source);
  const run = async (who: Session, name: string, title = name, isFresh = false) => {
    if (!only.test(title)) return;
    const answer = await timed(who, name, isFresh);
    results.set(title, [...(results.get(title) ?? []), answer]);
  };
  const hasSafetensors = works.some((one) => one.startsWith("safetensors"));
  const reusing = session(python, [theirProgram], REUSE);
  opened.push(reusing);
  await reusing.ask({ command: "open", folder, count: 0 });
  /** Each in a new process, closed again. */
  const runNew = async () => {
    if (!only.test(`${NEW.ours}, new memory`)) return;
    for (const [who, name] of [
      [session(process.execPath, ["--expose-gc", program]), NEW.ours],
      ...(hasSafetensors ? [[session(python, [theirProgram]), NEW.theirs] as const] : []),
    ] as const) {
      opened.push(who);
      await who.ask({ command: "open", folder, count: 0, ...device });
      await run(who, name, `${name}, new memory`, true);
      who.close();
    }
  };
  const [large, small] = [works.filter((one) => !one.startsWith(SMALL)), works.filter((one) => one.startsWith(SMALL))];
  // The first round warms up, and what it wrote is compared.
  const warm = async (who: Session, name: string) => {
    await who.ask({ command: "prepare", name });
    await who.ask({ command: "run", name });
  };
  for (const name of large) await warm(theirs, name);
  for (const name of OURS) await warm(ours, name);
  if (hasSafetensors) await warm(reusing, NEW.theirs);
  for (const path of CHECKED) {
    if (path === "st.safetensors" && !hasSafetensors) continue;
    const { isEqual } = await ours.ask({ command: "check", path });
    if (!isEqual) throw new Error(`${path} does not hold what was saved`);
  }
  for (let round = 0; round < Number(options.rounds); round++) {
    for (const name of large) await run(theirs, name);
    for (const name of OURS) await run(ours, name);
    if (hasSafetensors) await run(reusing, NEW.theirs, `${NEW.theirs}, reused memory`);
    await runNew();
  }
  for (let round = 0; round < Number(options.few); round++) {
    for (const name of small) await run(theirs, name);
    for (const name of OURS_SMALL) await run(ours, name);
  }
  ours.close();
  for (const { copy, kind, env } of KINDS) {
    const copying = session(process.execPath, ["--expose-gc", program], env);
    opened.push(copying);
    await copying.ask({ command: "open", folder, source: join(folder, "one"), ...device });
    for (let round = -1; round < Number(options.rounds); round++) {
      for (const [name, title] of [
        [copy, copy],
        [ASYNC, `${ASYNC}, ${kind}`],
      ] as const) {
        if (!only.test(title)) continue;
        const one = await timed(copying, name, kind === "fresh");
        if (round >= 0) results.set(title, [...(results.get(title) ?? []), one]);
      }
    }
    copying.close();
  }
  report(torch ?? "", used ?? "");
} finally {
  for (const one of opened) one.close();
  for (const one of [folder, dirname(program)]) rmSync(one, { recursive: true, force: true });
}

function report(torch: string, device: string): void {
  const median = (list: readonly number[]) => [...list].sort((a, b) => a - b)[list.length >> 1] ?? Number.NaN;
  const of = (name: string, what: "milliseconds" | "cpu" | "peak" = "milliseconds") =>
    median((results.get(name) ?? []).map((one) => one[what]));
  const data = Number(options.mib);
  /** Other programs only ever lengthen a run. */
  const least = (name: string) => Math.min(...results.get(name)!.map(({ milliseconds }) => milliseconds));
  const rows: [title: string, ratio: number, limit: number | undefined, spread?: readonly number[]][] = [];
  const compare = (a: string, b: string, limit?: number) => {
    const [ours, theirs] = [results.get(a), results.get(b)];
    if (!ours || !theirs) return;
    const rounds = ours.map(({ milliseconds }, i) => milliseconds / theirs[i]!.milliseconds).sort((x, y) => x - y);
    rows.push([`${a} / ${b}`, of(a) / of(b), limit, [median(rounds), rounds[0]!, rounds.at(-1)!, least(a) / least(b)]]);
    rows.push(["  processor time", of(a, "cpu") / of(b, "cpu"), undefined]);
  };
  compare("save", "safetensors save_file + fsync", 1.15);
  compare("save", "raw write + fsync");
  compare("save", "torch.save + fsync");
  compare("save", "DCP save");
  for (const kind of ["new memory", "reused memory"]) compare(`${NEW.ours}, ${kind}`, `${NEW.theirs}, ${kind}`, 1.5);
  compare("load into Tensors", "safetensors load_file + load_state_dict");
  compare("load as Tensors, reused memory", "safetensors load_file, touched");
  compare("load as Tensors, reused memory", "torch.load");
  compare("load into Tensors", "DCP load");
  rows.push(["load as Tensors: peak / data", of("load as Tensors, new memory", "peak") / data, 1.2]);
  compare("verify", "raw read");
  compare("merge", "DCP merge + fsync", 0.4);
  compare("merge", "DCP merge");
  compare("merge", "raw write + fsync");
  for (const { copy, kind } of KINDS) compare(`${ASYNC}, ${kind}`, copy, 1.2);
  const seconds: [string, number, number][] = [
    [`${SMALL}, 4 ranks: save`, of(`${SMALL}, 4 ranks: save`) / 1000, 6],
    [`${SMALL}, 4 ranks: load`, of(`${SMALL}, 4 ranks: load`) / 1000, 6],
    [`${SMALL}: reshard 4 to 3`, of(`${SMALL}: reshard 4 to 3`) / 1000, 10],
  ];
  const planning = planningSeconds();
  const table = Object.fromEntries(
    [...results.keys()].map((name) => [
      name,
      { seconds: of(name) / 1000, least: least(name) / 1000, cpu: of(name, "cpu") / 1000, peakMiB: of(name, "peak") },
    ]),
  );
  const load = loadavg().map((one) => one.toFixed(1));
  const written = {
    mib: data,
    rounds: Number(options.rounds),
    node: process.version,
    torch,
    device,
    load,
    others: during.others / during.wall,
    table,
    rows,
    seconds,
  };
  mkdirSync(dirname(options.out), { recursive: true });
  writeFileSync(options.out, `${JSON.stringify({ ...written, planning }, null, 1)}\n`);
  console.log(
    `${data} MiB, ${options.rounds} rounds, Node ${process.version}, device ${device}, PyTorch ${torch}, load ${load.join(" ")}; others, and the system for itself, kept ${(during.others / during.wall).toFixed(2)} processors busy\n`,
  );
  for (const [name, { seconds: s, least, cpu, peakMiB }] of Object.entries(table))
    console.log(
      `${name.padEnd(50)} ${s.toFixed(3)} s (least ${least.toFixed(3)} s), processors ${cpu.toFixed(3)} s, peak +${peakMiB.toFixed(0)} MiB`,
    );
  console.log();
  const bound = (limit: number | undefined) => (limit === undefined ? "" : ` (must hold: ${limit})`);
  for (const [title, ratio, limit, spread] of rows.filter(([, ratio]) => !Number.isNaN(ratio))) {
    const [middle, from, to, ofLeast] = spread?.map((one) => one.toFixed(2)) ?? [];
    const between = spread ? `, in single rounds ${middle} (${from} to ${to}), of the shortest runs ${ofLeast}` : "";
    console.log(`${title.padEnd(66)} ${ratio.toFixed(2)}${between}${bound(limit)}`);
  }
  const plan = ["planning 4096 to 3072 ranks, 2,000 tensors", planning, 5] as const;
  for (const [title, s, limit] of [...seconds.filter(([, s]) => !Number.isNaN(s)), plan])
    console.log(`${title.padEnd(66)} ${s.toFixed(2)} s${bound(limit)}`);
}
