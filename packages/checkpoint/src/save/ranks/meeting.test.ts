/** Ranks that share no communicator, through restarts under one and the same name. */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { loadCheckpoint } from "../../read/load";
import { MemoryFileSystem } from "../../testing/disks/memory-file-system";
import { expectCode } from "../../testing/expect-code";
import { type SaveOptions, saveCheckpoint } from "../save";
import { endAttempt, newAttempt } from "../step/owner";
import { meet } from "./meet";

const JOB = "job-4711";

/** The name of an attempt whose process has died: this process's number, started at another time. */
function deadAttempt(): string {
  const attempt = newAttempt();
  endAttempt(attempt);
  return attempt.replace(/\.(\d+)\.(\d+-)/, (_, start, rest) => `.${Number(start) + 1}.${rest}`);
}

/** Of a process that cannot be seen from here. */
function foreignAttempt(): string {
  return deadAttempt().replace(/^[^.]+\.[0-9a-f]+/, "elsewhere.0123456789ab");
}

async function write(disk: MemoryFileSystem, path: string, text: string): Promise<void> {
  const file = await disk.open(path, "create");
  await file.write(new TextEncoder().encode(text), 0);
}

const termsOf = (world: number) => `step 1, world ${world}`;

function save(disk: MemoryFileSystem, rank: number, value: number, options: SaveOptions = {}) {
  const w = { dtype: "f32", shape: [1], data: Float32Array.of(value) };
  return saveCheckpoint(
    "/r",
    { step: 1, tensors: { w }, values: { value } },
    { rank, world: 3, attempt: JOB, fileSystem: disk, ...options },
  );
}

const names = async (disk: MemoryFileSystem) => (await disk.list("/r")).map(({ name }) => name);

/** What a life of three ranks leaves that dies when `here` of them have come, `wrote` of them all they had to. */
async function diskAfterDeath(here: readonly number[], attempt: string, world = 3): Promise<MemoryFileSystem> {
  const disk = new MemoryFileSystem();
  // A live one shows how the pointer is called and what it says.
  const alive = [0, 1, 2].map((rank) => save(disk, rank, 0));
  const pointer = await new Promise<string>((resolve) => {
    const look = async () => {
      const name = (await disk.list("/r").catch(() => [])).find(({ name }) => name.includes(".life-"))?.name;
      if (name) resolve(name);
      else setImmediate(look);
    };
    look();
  });
  const says = new TextDecoder().decode(disk.contents(`/r/${pointer}`)).replace(/^\S+/, attempt);
  await Promise.all(alive);
  const after = new MemoryFileSystem();
  const place = `/r/step-00000001.tmp-${attempt}`;
  await after.makeFolder(`${place}.ranks`);
  await after.makeFolder(place);
  await write(after, `/r/${pointer}`, says.replace("world 3", `world ${world}`));
  for (const rank of here) {
    await write(after, `${place}.ranks/rank-0000${rank}.here`, attempt);
    if (here.length === 3) await write(after, `${place}.ranks/rank-0000${rank}.ready`, "");
    await write(after, `${place}.ranks/1.rank-0000${rank}.json`, '{"value":{"rank":0,"tensors":[]}}\n');
  }
  return after;
}

describe("one name in every life of a run", () => {
  it.each<[string, readonly number[]]>([
    ["one rank had come", [0]],
    ["two ranks had come and written", [0, 1]],
    ["all had written", [0, 1, 2]],
  ])("%s before all died: the next life saves its own, whole, and sweeps", async (_, here) => {
    const disk = await diskAfterDeath(here, deadAttempt());
    await Promise.all([2, 0, 1].map((rank) => save(disk, rank, 10 + rank)));
    const { tensors } = await loadCheckpoint("/r", { fileSystem: disk });
    expect([...(await tensors.w!.data())]).toEqual([10, 11, 12]);
    expect(await names(disk)).toEqual(["step-00000001"]);
  });

  it("a rank that died before it could say who it is keeps nothing alive", async () => {
    const attempt = deadAttempt();
    const disk = await diskAfterDeath([0], attempt);
    await write(disk, `/r/step-00000001.tmp-${attempt}.ranks/rank-00001.here`, "");
    await Promise.all([0, 1, 2].map((rank) => save(disk, rank, rank)));
    expect(await names(disk)).toEqual(["step-00000001"]);
  });

  it("an earlier life of another size is over too", async () => {
    const disk = await diskAfterDeath([0, 1], deadAttempt(), 8);
    await Promise.all([0, 1, 2].map((rank) => save(disk, rank, rank)));
    expect(await names(disk)).toEqual(["step-00000001"]);
  });

  it("of processes that cannot be seen from here: who does not answer is dead, whoever had joined them follows", async () => {
    const disk = await diskAfterDeath([1], foreignAttempt());
    const terms = "step 1";
    const pointer = (await names(disk)).find((name) => name.includes(".life-"))!;
    const said = new TextDecoder().decode(disk.contents(`/r/${pointer}`)).replace(/ .*/, ` ${terms}`);
    await write(disk, `/r/${pointer}`, said);
    const invitation = { fileSystem: disk, folder: "/r", step: 1, name: JOB, world: 3, terms, patience: 5000 };
    const joined = [0, 2].map((rank) => meet({ ...invitation, rank, answerWithin: 100 }));
    await sleep(50);
    const all = await Promise.all([...joined, meet({ ...invitation, rank: 1, answerWithin: 100 })]);
    expect(new Set(all.map(({ attempt }) => attempt)).size).toBe(1);
    expect(said.startsWith(all[0]!.attempt)).toBe(false);
    for (const meeting of all) await meeting.leave();
    expect((await names(disk)).filter((name) => name.includes(".life-"))).toEqual([]);
  });

  it("who lives answers, also while it writes: a second process of its rank is refused", async () => {
    const disk = new MemoryFileSystem();
    const invitation = {
      fileSystem: disk,
      folder: "/r",
      step: 1,
      name: JOB,
      world: 2,
      terms: termsOf(2),
      patience: 5000,
    };
    const both = await Promise.all([0, 1].map((rank) => meet({ ...invitation, rank })));
    const third = meet({ ...invitation, rank: 1, patience: 100 });
    await expect(third).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
      message: expect.stringMatching(/two processes/),
    });
    await expect(both[0]!.gather(0)).rejects.toMatchObject({ message: expect.stringMatching(/two processes/) });
    for (const meeting of both) await meeting.leave();
  });
});

describe("ranks that do not fit together: every one learns it", () => {
  it.each<[string, SaveOptions, string]>([
    ["another world", { world: 4 }, "BAD_ARGUMENT"],
    ["whole tensors beside slices", { whole: true }, "BAD_ARGUMENT"],
    ["replicas compared by one alone", { checkReplicas: true }, "BAD_ARGUMENT"],
    [
      "another layout",
      { layout: { mesh: { shape: [3], axes: ["x"] }, tensors: { "*": "replicate" } } },
      "BAD_ARGUMENT",
    ],
  ])("%s", async (_, options, code) => {
    const disk = new MemoryFileSystem();
    const saves = [save(disk, 0, 0), save(disk, 1, 1), save(disk, 2, 2, options)];
    for (const outcome of await Promise.allSettled(saves)) expect(outcome).toMatchObject({ reason: { code } });
    expect(await names(disk)).toEqual([]);
  });

  it("a rank that does not come", async () => {
    const disk = new MemoryFileSystem();
    const others = [0, 2].map((rank) => save(disk, rank, rank, { patience: 300 }));
    for (const outcome of await Promise.allSettled(others)) {
      expect(outcome).toMatchObject({
        reason: { code: "MISSING", message: expect.stringMatching(/rank 1 did not come/) },
      });
    }
    expect(await names(disk)).toEqual([]);
    await Promise.all([0, 1, 2].map((rank) => save(disk, rank, rank)));
    expect(await names(disk)).toEqual(["step-00000001"]);
  });

  it("a tensor of another dtype", async () => {
    const disk = new MemoryFileSystem();
    const w = { dtype: "i32", shape: [1], data: Int32Array.of(1) };
    const odd = saveCheckpoint(
      "/r",
      { step: 1, tensors: { w } },
      { rank: 2, world: 3, attempt: JOB, fileSystem: disk },
    );
    for (const outcome of await Promise.allSettled([save(disk, 0, 0), save(disk, 1, 1), odd]))
      expect(outcome).toMatchObject({ reason: { code: "BAD_DTYPE" } });
    expect(await names(disk)).toEqual([]);
  });

  it("a rank that dies meanwhile", async () => {
    const disk = new MemoryFileSystem();
    const saves = [0, 1].map((rank) => save(disk, rank, rank, { patience: 60_000 }));
    const dying = save(disk, 2, 2, { patience: 60_000 });
    // Its first message is there, and then its process is not.
    const place = async () => (await names(disk).catch(() => [])).find((name) => name.endsWith(".ranks"));
    while (!(await place())) await sleep(1);
    const here = `/r/${await place()}/rank-00002.here`;
    while ((await disk.kind(here)) === undefined) await sleep(0);
    await write(disk, here, deadAttempt());
    for (const outcome of await Promise.allSettled([...saves, dying]))
      expect(outcome).toMatchObject({ reason: { code: "IO", message: expect.stringMatching(/rank 2.* has died/) } });
  });
});

/** A disk on which one rank's messages find no room from number `from` on; for names there is. */
function fullFrom(disk: MemoryFileSystem, from: number): MemoryFileSystem {
  let messages = 0;
  const createOnce = async (path: string, data: Uint8Array | string) => {
    if (messages++ < from || data.length === 0) return disk.createOnce(path, data);
    throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
  };
  return new Proxy(disk, {
    get: (_, name) => {
      const value = name === "createOnce" ? createOnce : Reflect.get(disk, name);
      return typeof value === "function" ? value.bind(disk) : value;
    },
  });
}

describe("a disk that is full for one rank is an error on all of them, and nobody waits for what it cannot say", () => {
  it.each([0, 1, 2].flatMap((rank) => [2, 3, 4].map((from) => [rank, from] as const)))(
    "rank %i, from its message %i on",
    async (rank, from) => {
      const disk = new MemoryFileSystem();
      const disks = [0, 1, 2].map((one) => (one === rank ? fullFrom(disk, from) : disk));
      const outcomes = await Promise.allSettled(disks.map((fileSystem, one) => save(fileSystem, one, one)));
      for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { name: "OptError", code: "IO" } });
    },
  );
});

it("a step that exists is refused on every rank, before anybody writes", async () => {
  const disk = new MemoryFileSystem();
  await Promise.all([0, 1, 2].map((rank) => save(disk, rank, rank)));
  for (const outcome of await Promise.allSettled([0, 1, 2].map((rank) => save(disk, rank, 9))))
    expect(outcome).toMatchObject({ reason: { code: "DUPLICATE" } });
  await Promise.all([0, 1, 2].map((rank) => save(disk, rank, 9, { overwrite: true })));
  expect((await loadCheckpoint("/r", { fileSystem: disk })).values).toEqual({ value: 9 });
});

it("a rank of how many must be said", async () => {
  await expectCode("BAD_ARGUMENT", saveCheckpoint("/r", { step: 1, tensors: {} }, { rank: 1 }));
});
