import { describe, expect, it } from "vitest";
import { init, parameter, tidy, zeros } from "..";
import { countOf, countOverwrites, returnVersionNumber, takeVersionNumber, versionNumbers } from "./versions";

describe("version numbers", () => {
  it("are nobody else's until they come back", () => {
    const numbers = Array.from({ length: 1000 }, takeVersionNumber);
    expect(new Set(numbers).size).toBe(1000);
    countOverwrites(Int32Array.from(numbers));
    const [first] = numbers;
    const before = countOf(first!);
    returnVersionNumber(first!);
    expect(takeVersionNumber()).toBe(first);
    expect(countOf(first!)).toBe(before);
    numbers.forEach(returnVersionNumber);
  });

  it("do not change a storage's version when it gets one, and count on from there", async () => {
    await init("js");
    const earlier = zeros([2]);
    countOverwrites(versionNumbers([earlier.storage])); // leaves a count behind
    countOverwrites(versionNumbers([earlier.storage]));
    earlier.dispose();
    const x = parameter([1, 2]);
    const before = x.storage.version;
    const numbers = versionNumbers([x.storage]);
    expect(x.storage.version).toBe(before);
    countOverwrites(numbers);
    x.storage.overwritten();
    expect(x.storage.version).toBe(before + 2);
    expect(versionNumbers([x.storage])).toEqual(numbers);
    x.dispose();
  });

  it("of freed memory are used again", async () => {
    await init("js");
    const numbers = [1, 2, 3].map(() => tidy(() => versionNumbers([zeros([2]).storage])[0]));
    expect(new Set(numbers).size).toBe(1);
  });
});
