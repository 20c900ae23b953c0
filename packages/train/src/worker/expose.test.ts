/** Both sides in this thread: what the worker's side tells, and in which order. Real workers are in `worker.test.ts`. */
import { AdamW } from "@opt/adam-amsgrad";
import { memoryFileSystem } from "@opt/checkpoint";
import { init, OptError, type Tensor, tensor } from "@opt/core";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Batch, begin, dataset, optionsOf } from "../../testing/runs";
import { checkpoints } from "../callbacks/checkpoints";
import { fit } from "../fit";
import type { Callback, FitState } from "../fit/events";
import { type ExposedRun, expose } from "./expose";
import type { WorkerEvent } from "./messages";
import { type StartedRun, start } from "./start";

beforeEach(() => init("js"));

const ports: MessagePort[] = [];
afterEach(() => {
  for (const port of ports.splice(0)) port.close();
});

/** Starts what a worker with this body would expose. */
function started<Result = unknown>(body: (run: ExposedRun, options: never) => unknown, options?: unknown) {
  const { port1, port2 } = new MessageChannel();
  ports.push(port1, port2);
  const spy = vi.spyOn(process, "getBuiltinModule").mockReturnValue({ parentPort: port1 } as never);
  expose(body);
  spy.mockRestore();
  return start(port2 as never, options) as StartedRun<Result>;
}

/** What an event tells of its state, its losses left out. */
function told(type: WorkerEvent["type"], state: FitState) {
  const { epoch, epochs, step, epochStep, stepsPerEpoch, lr, history, checkpoint } = state;
  const logs = type === "epochEnd" ? history.epochs.at(-1)! : state.logs;
  return structuredClone({ type, epoch, epochs, step, epochStep, stepsPerEpoch, lr, logs, checkpoint });
}

it("tells each event but steps that the page has no time for, never the last of an epoch, and each loss once", async () => {
  const all: object[] = [];
  const noting = (type: WorkerEvent["type"]) => (state: FitState) => void all.push(told(type, state));
  const notes: Callback = {
    onTrainBegin: noting("trainBegin"),
    onEpochBegin: noting("epochBegin"),
    onStepEnd: noting("stepEnd"),
    onEvaluate: noting("evaluate"),
    onEpochEnd: noting("epochEnd"),
    onSave: noting("save"),
    onTrainEnd: noting("trainEnd"),
  };
  const fileSystem = memoryFileSystem();
  const body = async ({ report }: ExposedRun, { epochs }: { epochs: number }) => {
    const trained = begin("mlp", (model) => new AdamW(model.namedParameters(), { lr: 0.02 }), {});
    const validation = [dataset([6], 9).batch(Int32Array.of(0, 1, 2, 3)) as Batch];
    const callbacks = [report(), notes, checkpoints("a", { fileSystem })];
    const options = { ...optionsOf(trained, {}), epochs, validation, callbacks, resume: true };
    const { losses } = await fit(trained.model, options);
    return [...losses];
  };
  const run = started<number[]>(body, { epochs: 3 });
  const events: object[] = [];
  const losses: number[] = [];
  for await (const { losses: more, ...event } of run) {
    events.push(event);
    losses.push(...more);
  }
  expect(losses).toEqual(await run.result);
  expect(losses).toHaveLength(9);
  type Noted = Pick<WorkerEvent, "type" | "epochStep">;
  const kept = (event: object) => (event as Noted).type !== "stepEnd" || (event as Noted).epochStep === 3;
  expect(events.filter(kept)).toEqual(all.filter(kept));
  expect(all).toEqual(expect.arrayContaining(events));
  // A resumed run tells its own.
  const resumed = started<number[]>(body, { epochs: 5 });
  losses.length = 0;
  for await (const event of resumed) losses.push(...event.losses);
  expect(losses).toEqual((await resumed.result).slice(9));
  expect(losses).toHaveLength(6);
});

it("tells no more steps until the page has taken the last event", async () => {
  let callback: Callback | undefined;
  const state = { history: { losses: [] as number[], epochs: [] }, logs: {} } as unknown as FitState;
  const step = async (loss: number) => {
    (state.history.losses as number[]).push(loss);
    await callback!.onStepEnd!(state, undefined as never);
  };
  const seen: number[][] = [];
  let free: (() => void) | undefined;
  const run = started(async ({ report }) => {
    callback = report();
    await step(1);
    await vi.waitUntil(() => free !== undefined); // the page has the first step, and keeps it
    await step(2);
    await step(3);
    free!();
    await vi.waitUntil(async () => {
      await new Promise((resolve) => setTimeout(resolve));
      await step(0);
      return seen.length > 1;
    });
  });
  for await (const { losses } of run) {
    seen.push([...losses]);
    if (seen.length > 1) break;
    await new Promise<void>((resolve) => {
      free = resolve;
    });
  }
  await run.result;
  expect([seen[0], seen[1]!.slice(0, 3)]).toEqual([[1], [2, 3, 0]]);
});

it("returns tensors at any depth, and plain data as it is", async () => {
  const run = started<{ list: [{ x: Tensor }, Date]; none: null }>(() => ({
    list: [{ x: tensor([[1], [2]], { dtype: "i32" }) }, new Date(5)],
    none: null,
  }));
  const { list, none } = await run.result;
  const [{ x }, date] = list;
  expect([x.dtype, x.shape, x.tolist(), date, none]).toEqual(["i32", [2, 1], [[1], [2]], new Date(5), null]);
});

it("a worker alone keeps no program alive", async () => {
  const { port1, port2 } = new MessageChannel();
  ports.push(port1, port2);
  const unref = vi.spyOn(port2 as never as { unref(): void }, "unref");
  start(port2 as never);
  expect(unref).toHaveBeenCalledOnce();
});

it.each<[string, () => unknown]>([
  ["ended", () => 5],
  [
    "failed",
    () => {
      throw new Error("wrong");
    },
  ],
])(
  "who iterates over a run that has %s hears no event, and how it ended",
  async (_, body) => {
    const run = started(body);
    const settled = run.result.then(String, String);
    const heard = async () => {
      for await (const event of run) return event;
      return run.result;
    };
    const early = heard().then(String, String); // with others at once
    const end = await settled;
    expect([await early, await heard().then(String, String)]).toEqual([end, end]);
  },
  10_000,
);

it("aborts its signal when the page stops it", async () => {
  const run = started<boolean>(async ({ signal }) => {
    const before = signal.aborted;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return [before, signal.aborted];
  });
  run.stop();
  expect(await run.result).toEqual([false, true]);
});

it.each<[string, () => unknown, unknown]>([
  ["an error of ours, with its code", () => new OptError("BAD_SHAPE", "here", "wrong."), { code: "BAD_SHAPE" }],
  ["another error", () => new TypeError("wrong"), { message: "wrong" }],
  ["what is no error", () => "wrong", { message: "wrong" }],
])("passes on %s", async (_, made, expected) => {
  const run = started(() => {
    throw made();
  });
  await expect(run.result).rejects.toMatchObject(expected as object);
  const error: unknown = await run.result.catch((thrown) => thrown);
  expect(error instanceof OptError).toBe(made() instanceof OptError);
});
