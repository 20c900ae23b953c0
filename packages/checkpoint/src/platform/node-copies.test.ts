/** What a save leaves to the next, and what it must not. */
import { expect, it } from "vitest";
import { randomBytes } from "../testing/fixtures";
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
