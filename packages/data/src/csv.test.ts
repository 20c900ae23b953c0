import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { expect, it } from "vitest";
import { fromCsv } from "./index";

it("has columns of numbers and of texts", () => {
  const table = fromCsv("length,width,kind\n5.1,3.5,setosa\r\n7,,virginica\n");
  expect(table.length).toEqual(Float32Array.of(5.1, 7));
  expect(table.width).toEqual(Float32Array.of(3.5, Number.NaN));
  expect(table.kind).toEqual(["setosa", "virginica"]);
});

it("reads quotes, line ends inside of them, and no last line end", () => {
  const table = fromCsv('\uFEFFname,says\n"Ada, L.","two\nlines"\n\n"a ""word""",');
  expect(table).toEqual({ name: ["Ada, L.", 'a "word"'], says: ["two\nlines", ""] });
});

it.each(["\t", ";", "|", "]", "^"])("takes the separator %j", (separator) => {
  expect(fromCsv(`a${separator}b\n1${separator}-2e3`, { separator })).toEqual({
    a: Float32Array.of(1),
    b: Float32Array.of(-2000),
  });
});

it("an empty text has no columns", () => expect(fromCsv("")).toEqual({}));

it.each([
  ["CORRUPT", "a,b\n1\n"],
  ["CORRUPT", 'a\n"open\n'],
  ["CORRUPT", 'a\nx"y\n'],
  ["DUPLICATE", "a,a\n1,2\n"],
  ["BAD_ARGUMENT", new Uint8Array(1) as never],
] as const)("throws %s for %j", (code, text) => expectCode(code, () => fromCsv(text)));

it.each(["", "::", '"', "\n"])("throws BAD_ARGUMENT for the separator %j", (separator) =>
  expectCode("BAD_ARGUMENT", () => fromCsv("a", { separator })),
);

it("a column is of numbers where each cell is one, lacks, or is no number in any case", () => {
  const numbers = {
    "1": 1,
    " -2.5 ": -2.5,
    "1e3": 1000,
    "-Infinity": -Infinity,
    "": NaN,
    NaN: NaN,
    nan: NaN,
    " NAN ": NaN,
  };
  const cell = fc.constantFrom(...Object.keys(numbers), ...Object.keys(numbers), "one", "1,5", "nano");
  fc.assert(
    fc.property(fc.array(cell, { minLength: 1, maxLength: 4 }), (cells) => {
      const { a } = fromCsv(["a;b", ...cells.map((each) => `${each};`)].join("\n"), { separator: ";" });
      const areNumbers = cells.every((each) => each in numbers);
      expect(a).toEqual(areNumbers ? Float32Array.from(cells, (each) => numbers[each as "1"]) : cells);
    }),
    { seed: 1 },
  );
});
