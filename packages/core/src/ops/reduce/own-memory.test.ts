/** Orders and running sums on devices whose memory the host doesn't share: they compute in other ways than the host. */
import fc from "fast-check";
import { expect, it } from "vitest";
import { FakeDevice } from "../../../testing/fake-backend";
import { tensor } from "../../create";
import { cumprod, cumsum } from "./cumsum";
import { sort } from "./sort";
import { topk } from "./topk";

const device = new FakeDevice({ async: true });

/** What order means: NaN is largest, of equals the first comes first. */
function ordered(row: readonly number[], descending: boolean): number[] {
  const compare = (a: number, b: number) =>
    a < b ? -1 : b < a ? 1 : Number(Number.isNaN(a)) - Number(Number.isNaN(b));
  const places = row.map((_, i) => i);
  return places.sort((i, j) => (descending ? compare(row[j]!, row[i]!) : compare(row[i]!, row[j]!)) || i - j);
}

async function checkSorted(rows: readonly number[][], descending: boolean): Promise<void> {
  const { values, indices } = sort(tensor(rows as number[][], { device }), 1, { descending });
  const expected = rows.map((row) => ordered(row, descending));
  const found = await indices.data();
  expect(Buffer.compare(bytesOf(found), bytesOf(Int32Array.from(expected.flat())))).toBe(0);
  expect([...(await values.data())]).toEqual(expected.flatMap((places, r) => places.map((i) => rows[r]![i])));
}

const bytesOf = ({ buffer, byteOffset, byteLength }: ArrayBufferView) => new Uint8Array(buffer, byteOffset, byteLength);

/** Many ties, and numbers of every kind. */
const numbers = fc.constantFrom(0, 1, -1, 2, 0.5, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY);
const matrices = fc.tuple(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 2, max: 40 })).chain(([rows, columns]) => {
  const row = fc.array(numbers, { minLength: columns, maxLength: columns });
  return fc.array(row, { minLength: rows, maxLength: rows });
});

it("sort keeps equals in their order", () =>
  fc.assert(fc.asyncProperty(matrices, fc.boolean(), checkSorted), { numRuns: 40 }));

// From 2,049 in a row on, or as many in several rows, the comparisons do not fit into memory at once.
it.each([
  ["one row of 2,200", 1, 2200],
  ["30 rows of 400", 30, 400],
])("sort keeps equals in their order in %s", async (_, rows, columns) => {
  const row = (r: number) => Array.from({ length: columns }, (_, i) => ((i + r) * 7919) % 5);
  await checkSorted(
    Array.from({ length: rows }, (_, r) => row(r)),
    false,
  );
});

it("topk finds as many as sort, of equals the first", () =>
  fc.assert(
    fc.asyncProperty(matrices, fc.boolean(), async (rows, largest) => {
      const [columns] = [rows[0]!.length];
      const k = Math.ceil(columns / 2); // rounds of the device's above and below the host's limit
      const { indices } = topk(tensor(rows, { device }), k, 1, { largest });
      const expected = rows.flatMap((row) => ordered(row, largest).slice(0, k));
      expect([...(await indices.data())]).toEqual(expected);
    }),
    { numRuns: 40 },
  ));

it("running sums and products are those of the host, forwards and with gradients", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(fc.integer({ min: -2, max: 2 }), { minLength: 9, maxLength: 9 }), {
        minLength: 1,
        maxLength: 9,
      }),
      fc.integer({ min: 0, max: 1 }),
      async (rows, axis) => {
        for (const running of [cumsum, cumprod]) {
          const of = async (where?: FakeDevice) => {
            const x = tensor(rows, { device: where, requiresGrad: true });
            const y = running(x, axis);
            y.sum().backward();
            return [[...(await y.data())], [...(await x.grad!.data())]].map((list) => list.map((value) => value + 0));
          };
          expect(await of(device)).toEqual(await of());
        }
      },
    ),
    { numRuns: 30 },
  ));
