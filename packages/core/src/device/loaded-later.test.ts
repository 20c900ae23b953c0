import { expect, it } from "vitest";
import { loadedLater } from "./loaded-later";
import { init } from "./registry";

it("is loaded once, by the next init", async () => {
  let loads = 0;
  const later = loadedLater(async () => ++loads);
  expect(later.code).toBeUndefined();
  await init("js");
  await init("js");
  expect([later.code, loads]).toEqual([1, 1]);
});
