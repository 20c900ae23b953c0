/** Where the time of a step goes: by op and kernel. */
import type { Backend } from "../backend/backend";
import { outputsOf, writesOf } from "../backend/launches";
import type { Launch } from "../backend/spec";
import { kernelText } from "../compile/explain";
import { type WatchedOp, type WatchedTensor, type Watcher, watched } from "../device/watcher";
import { checkBody } from "../host/synchronous";

/** One launch, and the host's time before it. */
interface Run {
  /** The op on the tape; undefined elsewhere, and in compiled functions. */
  op: string | undefined;
  readonly launch: Launch;
  readonly device: string;
  /** Milliseconds from the start of the body. */
  readonly begin: number;
  readonly end: number;
}

/** An event of Chrome's trace format: `ts` and `dur` in microseconds. */
export interface TraceEvent {
  readonly name: string;
  readonly cat: "body" | "host" | "kernel";
  readonly ph: "X";
  readonly ts: number;
  readonly dur: number;
  readonly pid: number;
  readonly tid: number;
  readonly args: Readonly<Record<string, string>>;
}

/** What `profile` found. */
export interface Profile {
  /** Of the whole body. */
  readonly milliseconds: number;
  /** For https://ui.perfetto.dev and chrome://tracing: write it to a file as JSON. */
  toTrace(): { readonly traceEvents: readonly TraceEvent[] };
  /** A row for each op and kernel, the longest first: calls, milliseconds in the kernel, milliseconds of the host before it, share. */
  table(): string;
}

/**
 * Runs `body` once and notes the time of each kernel, and of the host between kernels. Call the body once before: first calls compile kernels.
 * Kernels are named by their op (`matmul`, `matmul backward`) and by what they compute. Compiled functions run their kernels one by one.
 * On webgpu a kernel's time is that of the host, which only enqueues it.
 *
 * @throws OptError BAD_ARGUMENT; what `body` throws
 * @example
 * const w = parameter([1, 2]);
 * const step = () => w.mul(w).sum().backward();
 * step();
 * const steps = await profile(step);
 * console.log(steps.table());
 * const json = JSON.stringify(steps.toTrace());
 */
export async function profile(body: () => unknown): Promise<Profile> {
  checkBody("profile", body);
  const profiler = new Profiler();
  await watched(profiler, body);
  const milliseconds = profiler.now();
  const { runs } = profiler;
  return {
    milliseconds,
    toTrace: () => ({ traceEvents: eventsOf(runs, milliseconds) }),
    table: () => tableOf(runs, milliseconds),
  };
}

class Profiler implements Watcher {
  readonly isEager = false;
  readonly runs: Run[] = [];
  /** What the profiler itself takes does not count. */
  #start = performance.now();
  #op: string | undefined;

  now(): number {
    return performance.now() - this.#start;
  }

  launch({ name, backend }: { readonly name: string; readonly backend: Backend }, launch: Launch, run: () => void) {
    const begin = this.now();
    run();
    if (!backend.sharesMemory) finish(backend, launch);
    const end = this.now();
    this.runs.push({ op: this.#op, launch, device: name, begin, end });
    this.#leaveOut(end);
  }

  recorded({ name }: WatchedOp, { storage }: WatchedTensor): void {
    const begin = this.now();
    const last = this.runs.at(-1);
    if (last !== undefined && last.op === undefined && writesOf(last.launch).has(storage.memory)) last.op = name;
    this.#leaveOut(begin);
  }

  backward<Gradient extends WatchedTensor | null>(
    { name }: WatchedOp,
    run: () => readonly Gradient[],
  ): readonly Gradient[] {
    this.#op = `${name} backward`;
    try {
      return run();
    } finally {
      this.#op = undefined;
    }
  }

  /** The time since then. */
  #leaveOut(since: number): void {
    this.#start += this.now() - since;
  }
}

/** Waits until a launch is done, where the device can. */
function finish(backend: Backend, launch: Launch): void {
  const [output] = outputsOf(launch);
  if (output && output.length > 0) backend.readSync?.(output.memory, output.byteOffset, 1);
}

/** The op on the tape, the rule of an optimizer, or what kind of kernel it is. */
const opOf = ({ op, launch }: Run) => op ?? (launch.kind === "rule" ? launch.kernel.spec.rule.name : launch.kind);

function eventsOf(runs: readonly Run[], milliseconds: number): TraceEvent[] {
  const event = (name: string, cat: TraceEvent["cat"], begin: number, end: number, args = {}): TraceEvent => {
    return { name, cat, ph: "X", ts: 1000 * begin, dur: 1000 * (end - begin), pid: 1, tid: 1, args };
  };
  const events = [event("body", "body", 0, milliseconds)];
  let last = 0;
  for (const run of runs) {
    const { begin, end, device, launch } = run;
    events.push(event("host", "host", last, begin, { before: opOf(run) }));
    events.push(event(opOf(run), "kernel", begin, end, { device, kernel: kernelText(launch.kernel.spec) }));
    last = end;
  }
  events.push(event("host", "host", last, milliseconds));
  return events;
}

const COLUMNS = ["op", "kernel", "calls", "kernel ms", "host ms", "share"];
const WIDEST = 48;

function tableOf(runs: readonly Run[], milliseconds: number): string {
  const sums = new Map<string, { names: string[]; calls: number; kernel: number; host: number }>();
  let last = 0;
  for (const run of runs) {
    const names = [opOf(run), kernelText(run.launch.kernel.spec).slice(0, WIDEST)];
    const sum = sums.get(names.join()) ?? { names, calls: 0, kernel: 0, host: 0 };
    sum.calls++;
    sum.kernel += run.end - run.begin;
    sum.host += run.begin - last;
    last = run.end;
    sums.set(names.join(), sum);
  }
  const rest = { names: ["(host, at the end)", ""], calls: 1, kernel: 0, host: milliseconds - last };
  const sorted = [...sums.values(), rest].sort((a, b) => b.kernel + b.host - a.kernel - a.host);
  const rows = sorted.map(({ names, calls, kernel, host }) => {
    const share = `${((100 * (kernel + host)) / milliseconds).toFixed(1)} %`;
    return [...names, String(calls), kernel.toFixed(3), host.toFixed(3), share];
  });
  const all = [COLUMNS, ...rows];
  const widths = COLUMNS.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  const pad = (cell: string, column: number) =>
    column < 2 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!);
  return all.map((row) => row.map(pad).join("  ")).join("\n");
}
