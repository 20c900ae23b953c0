/** Several tensors as one flat list, in pieces, over an engine that moves nothing by itself: what it takes for a sum to go on, and its bits. */
import { full, Generator, randn, type Tensor, zeros } from "@opt/core";
import { describe, expect, it } from "vitest";
import type { Engine } from "../engine/engine";
import { digest } from "./digest";
import { Group } from "./group";
import { piecesOf } from "./parts";
import { allReduce } from "./reduce";

type Message = { key: string; bytes: Uint8Array; ended: () => void };

/** Ranks of this process: a message moves when its receiver polls. */
function ranks(size: number): Group[] {
  const sent: Message[][] = Array.from({ length: size }, () => []);
  return sent.map((_, rank) => {
    let wanted: Message[] = [];
    const engine: Engine = {
      name: "polled",
      rank,
      size,
      send: () => Promise.reject(new Error("not asked")),
      receive: () => Promise.reject(new Error("not asked")),
      begin({ kind, rank: other, tag, bytes }, ended) {
        const message = { key: `${kind === "send" ? rank : other} ${tag}`, bytes, ended };
        if (kind === "receive") wanted.push(message);
        else {
          // As MPI does: short messages are over at once, before longer ones that began earlier.
          const isEager = bytes.length < 4096;
          sent[other]!.push(isEager ? { key: message.key, bytes: bytes.slice(), ended() {} } : message);
          if (isEager) ended();
        }
      },
      poll() {
        for (const receiver of [...wanted]) {
          const at = sent[rank]!.findIndex(({ key }) => key === receiver.key);
          if (at < 0) continue;
          const [sender] = sent[rank]!.splice(at, 1) as [Message];
          wanted = wanted.filter((each) => each !== receiver);
          expect(sender.bytes.length).toBe(receiver.bytes.length);
          receiver.bytes.set(sender.bytes);
          sender.ended();
          receiver.ended();
        }
      },
      close: async () => {},
    };
    const world = { engine, timeout: 60_000, nextGroup: 256, nextMeshGroup: 1, isClosed: false };
    return new Group(
      world,
      "world",
      Array.from({ length: size }, (__, i) => i),
      0,
    );
  });
}

const PIECE = (1 << 20) / 4;

describe("pieces of a part", () => {
  it.each([
    [0, []],
    [1, [1]],
    [PIECE - 1, [PIECE - 1]],
    [PIECE, [PIECE, 0]], // the last is shorter, always
    [2 * PIECE + 5, [PIECE, PIECE, 5]],
  ])("of %d elements", (count, lengths) => {
    const pieces = piecesOf({ begin: 7, end: 7 + count }, 4);
    expect(pieces.map(({ begin, end }) => end - begin)).toEqual(lengths);
    expect(pieces.reduce((at, { begin, end }) => (begin === at ? end : -1), 7)).toBe(7 + count);
  });
});

it.each([
  [2, [2 * PIECE]],
  [2, [3, PIECE, 0, 2 * PIECE - 3, 1]],
  [3, [PIECE + 1, 1, 1, 5 * PIECE]],
  [4, [2, 1]],
  [9, [2, 1]],
])("%d ranks add tensors of %j elements without a task in between", async (size, sizes) => {
  const groups = ranks(size);
  const generator = new Generator(1);
  const rows = groups.map(() => sizes.map((count) => randn([count], { generator })));
  const sums = sizes.map((_, i) =>
    rows
      .map((row) => row[i]!.clone())
      .reduce((sum, x) => sum.add(x))
      .div(size),
  );
  const done = groups.map((group, rank) => allReduce(group, "allReduce", rows[rank]!, "mean", { what: "sum" }));
  // Sums of all pieces are made here, before any promise can go on.
  for (let round = 0; round < 40; round++) for (const group of groups) group.poll();
  const bits = (tensors: readonly Tensor[]) => tensors.map((x) => digest(x.bytesSync()));
  const within = rows.map(bits);
  await Promise.all(done);
  for (const row of within) expect(row).toEqual(bits(sums));
});

it.each([
  [8, [8, 8]],
  [9, [9, 2]],
])("%d ranks send %j messages for a short list: heading, contributions, results", async (size, [first, second]) => {
  const groups = ranks(size);
  const done = groups.map((group) => allReduce(group, "allReduce", [full([3], 1)], "sum", { what: "sum" }));
  for (let round = 0; round < 4; round++) for (const group of groups) group.poll();
  await Promise.all(done);
  expect(groups.map(({ traffic }) => traffic.messages)).toEqual([first, ...new Array(size - 1).fill(second)]);
});

it("a rank that fails to send gives the sum up", async () => {
  const [group] = ranks(2) as [Group];
  const engine = group.world.engine as { begin: Engine["begin"] };
  engine.begin = (_, ended) => ended!(new Error("gone"));
  await expect(allReduce(group, "allReduce", [full([3], 1), zeros([2])], "sum", { what: "sum" })).rejects.toThrow(
    "gone",
  );
});
