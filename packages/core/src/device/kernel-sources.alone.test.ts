import { expectCode } from "@opt/testkit";
import { expect, it, vi } from "vitest";
import { kernelSources } from "./kernel-sources";

const ops = vi.hoisted(() => ({ areImported: false }));

vi.mock("../js/carried", async (original) => ({
  ...(await original<typeof import("../js/carried")>()),
  isCarried: () => ops.areImported,
}));

it("loads the kernels of ops once, when such an op was imported", async () => {
  let loads = 0;
  const sources = kernelSources("toy", { map: "map" }, ["gather"], async () => ({ gather: `gather ${++loads}` }));
  await sources.load();
  expect(sources.of("map")).toBe("map");
  expectCode("DEVICE_UNAVAILABLE", () => sources.of("gather"));
  ops.areImported = true;
  await sources.load();
  await sources.load();
  expect([sources.of("gather"), sources.of("map")]).toEqual(["gather 1", "map"]);
});
