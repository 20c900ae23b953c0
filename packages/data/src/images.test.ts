import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { fromImages } from "./index";

const picture = (...data: number[]) => ({ data: Uint8ClampedArray.from(data), width: data.length / 4, height: 1 });
const [first, second] = [picture(255, 0, 51, 9, 0, 102, 0, 9), picture(0, 0, 0, 0, 255, 255, 255, 255)];

it("has a plane for each colour, from 0 to 1", () => {
  const { data, shape } = fromImages([first, second]);
  expect(shape).toEqual([2, 3, 1, 2]);
  expect(Array.from(data)).toEqual([1, 0, 0, Math.fround(0.4), Math.fround(0.2), 0, 0, 1, 0, 1, 0, 1]);
});

it("has the brightness alone", () => {
  const { data, shape } = fromImages([second, picture(255, 0, 0, 0, 0, 255, 0, 0)], { channels: 1 });
  expect(shape).toEqual([2, 1, 1, 2]);
  expect(Array.from(data)).toEqual([0, 1, 0.299, 0.587].map(Math.fround));
});

it.each([
  ["BAD_ARGUMENT", []],
  ["BAD_ARGUMENT", [null as never]],
  ["BAD_ARGUMENT", first as never],
  ["BAD_ARGUMENT", [{ ...first, width: 3 }]],
  ["BAD_SHAPE", [first, picture(0, 0, 0, 0)]],
] as const)("throws %s for pictures that do not fit", (code, images) => expectCode(code, () => fromImages(images)));

it("throws BAD_ARGUMENT for two channels", () =>
  expectCode("BAD_ARGUMENT", () => fromImages([first], { channels: 2 as never })));

it.each([0, 7, 9, 12])("rejects %d bytes for two pixels", (length) =>
  expectCode("BAD_ARGUMENT", () => fromImages([{ data: new Uint8Array(length), width: 2, height: 1 }])),
);
