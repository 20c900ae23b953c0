/** What a save leaves to the next, and what it must not. */
import { expect, it } from "vitest";
import { randomBytes } from "../../testing/fixtures";
import { threadCopies } from "./node-copies";

const LARGE = (1 << 20) + 5;

it("copies, small ones side by side", () => {
  const { copy, free } = threadCopies();
  const bytes = [0, 3, 700_000, 700_000, LARGE].map((length) => randomBytes(length, length));
  const copies = bytes.map(copy);
  expect(copies.map((one, i) => Buffer.compare(one, bytes[i]!))).toEqual([0, 0, 0, 0, 0]);
  const buffers = new Set(copies.map(({ buffer }) => buffer));
  expect([...buffers].every((buffer) => buffer instanceof SharedArrayBuffer)).toBe(true);
  expect(buffers.size).toBeLessThanOrEqual(4);
  free();
});

it("leaves memory to the next, and never to one at the same time", () => {
  const [one, other] = [threadCopies(), threadCopies()];
  const [first, second] = [one, other].map(({ copy }) => copy(randomBytes(LARGE, 1)).buffer);
  expect(first).not.toBe(second);
  one.free();
  one.free(); // twice is once
  const [third, fourth] = [1, 2].map((seed) => threadCopies().copy(randomBytes(LARGE, seed)).buffer);
  expect(third).toBe(first);
  expect([first, second]).not.toContain(fourth);
});

it("leaves no more than it may, what is oldest first", () => {
  const length = LARGE + 7;
  const save = threadCopies(2 * length);
  const copies = [1, 2, 3].map((seed) => save.copy(randomBytes(length, seed)).buffer);
  save.free();
  const next = threadCopies();
  const reused = [1, 2, 3].map((seed) => next.copy(randomBytes(length, seed)).buffer);
  expect(reused.slice(0, 2)).toEqual(copies.slice(1));
  expect(copies).not.toContain(reused[2]);
});
