import { compile, Generator, noGrad, randn, type Tensor, tensor, zeros } from "@opt/core";
import { expectCode } from "@opt/testkit";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GRU, GRUCell, LSTM, LSTMCell, RNN, RNNCell } from "../index";

const x = () => randn([4, 2, 3], { generator: new Generator(1) });

describe("RNN, LSTM and GRU", () => {
  it("have PyTorch's names", () => {
    expect(Object.keys(new LSTM(3, 2, { bidirectional: true }).stateDict()).slice(3)).toEqual([
      "bias_hh_l0",
      "weight_ih_l0_reverse",
      "weight_hh_l0_reverse",
      "bias_ih_l0_reverse",
      "bias_hh_l0_reverse",
    ]);
    expect(new GRU(3, 2, { bias: false }).namedParameters().map(([name, { shape }]) => `${name} ${shape}`)).toEqual([
      "weight_ih_l0 6,3",
      "weight_hh_l0 6,2",
    ]);
  });

  it("an LSTM that projects has PyTorch's names and shapes", () => {
    const lstm = new LSTM(3, 5, { projSize: 2, numLayers: 2, bidirectional: true, bias: false });
    const shapes = Object.entries(lstm.stateDict()).map(([name, { shape }]) => `${name} ${shape}`);
    const ends = ["l0", "l0_reverse", "l1", "l1_reverse"];
    expect(shapes).toEqual(
      ends.flatMap((end) => [
        `weight_ih_${end} 20,${end.startsWith("l0") ? 3 : 4}`,
        `weight_hh_${end} 20,2`,
        `weight_hr_${end} 2,5`,
      ]),
    );
    const [output, state] = lstm.forward(x());
    expect([output, ...state].map(({ shape }) => shape)).toEqual([
      [4, 2, 4],
      [4, 2, 2],
      [4, 2, 5],
    ]);
    expect(lstm.forward(x(), state)[1][1].shape).toEqual([4, 2, 5]);
    expect(String(lstm)).toContain("projSize=2");
    expectCode("BAD_SHAPE", () => lstm.forward(x(), [state[1], state[1]]));
    expectCode("BAD_ARGUMENT", () => {
      Object.assign(lstm, { weight_hr_l0: null });
    });
    for (const projSize of [5, -1, 0.5]) expectCode("BAD_ARGUMENT", () => new LSTM(3, 5, { projSize }));
    expectCode("BAD_ARGUMENT", () => new GRU(3, 5, { projSize: 2 } as never));
  });

  it("go on from their state", () => {
    const layer = new GRU(3, 2, { numLayers: 2 });
    const [whole] = layer.forward(x());
    const [, hidden] = layer.forward(x().slice(0, 2));
    const [rest] = layer.forward(x().slice(2, 4), hidden);
    expect(rest.dataSync()).toAgreeWith(whole.slice(2, 4).dataSync(), { absolute: 1e-6, relative: 1e-6 });
  });

  it.each([
    ["RNN", new RNNCell(3, 2), new RNN(3, 2)],
    ["GRU", new GRUCell(3, 2), new GRU(3, 2)],
  ] as const)("a cell of %s goes on from a state, as the layer does", (_, cell, layer) => {
    const weights = Object.entries(cell.stateDict()).map(([name, w]) => [`${name}_l0`, w] as const);
    layer.loadStateDict(Object.fromEntries(weights));
    const hidden = randn([2, 2], { generator: new Generator(2) });
    const next = cell.forward(x().select(0, 0), hidden);
    const [, last] = layer.forward(x().slice(0, 1), hidden.unsqueeze(0));
    expect(next.dataSync()).toAgreeWith(last.dataSync(), { absolute: 1e-6, relative: 1e-6 });
    expect(next.dataSync()).not.toAgreeWith(cell.forward(x().select(0, 0)).dataSync());
  });

  it("drop between layers in training alone, by their generator", () => {
    const made = () => new LSTM(3, 2, { numLayers: 2, dropout: 0.5, generator: new Generator(4) });
    const [a, b] = [made(), made()];
    expect(a.forward(x())[0].dataSync()).toAgreeWith(b.forward(x())[0].dataSync());
    expect(a.eval().forward(x())[0].dataSync()).toAgreeWith(a.forward(x())[0].dataSync());
  });

  it("drop the share that was set last", () => {
    const made = (dropout: number) => new LSTM(3, 2, { numLayers: 2, dropout, generator: new Generator(4) });
    const [set, whole] = [Object.assign(made(0.5), { dropout: 1 }), made(1)];
    expect(set.forward(x())[0].dataSync()).toAgreeWith(whole.forward(x())[0].dataSync());
    expect(set.forward(x())[0].dataSync()).not.toAgreeWith(set.eval().forward(x())[0].dataSync());
  });

  it("leave nothing behind but their results", () => {
    const [layer, given] = [new LSTM(3, 2, { bidirectional: true }), x()];
    const before = given.device.memory().tensors;
    const [y, [h, c]] = noGrad(() => layer.forward(given));
    expect(given.device.memory().tensors).toBe(before + 3);
    for (const result of [y, h, c]) result.dispose();
  });

  it("do the same compiled, on other numbers", () => {
    const layer = new LSTM(3, 2);
    const compiled = compile((x: Tensor) => layer.forward(x)[0], { check: "never" });
    compiled(x());
    const other = x().mul(-1);
    expect(compiled(other).dataSync()).toAgreeWith(layer.forward(other)[0].dataSync());
  });

  it("take lengths as numbers and as a tensor, whatever the padding is", () => {
    const layer = new GRU(3, 2, { bidirectional: true });
    const padded = x();
    const values = padded.dataSync();
    values.fill(Number.NaN, 3 * 2 * 3 + 3); // place 3 of the second sequence
    const [plain, tensors, other] = [
      layer.forward(padded, undefined, { lengths: [4, 3] }),
      layer.forward(padded, undefined, { lengths: tensor([4, 3], { dtype: "i32" }) }),
      layer.forward(tensor(values, { shape: [4, 2, 3] }), undefined, { lengths: [4, 3] }),
    ];
    for (const [i, result] of plain.entries()) {
      for (const same of [tensors, other]) expect(same[i]!.dataSync()).toAgreeWith(result.dataSync());
    }
    expect(plain[0].slice(3, 4).slice(1, 2, 1).tolist()).toEqual([[[0, 0, 0, 0]]]);
  });

  it("give each sequence of a batch what it gets alone, whatever the lengths", () => {
    const layers = [new RNN(3, 2, { numLayers: 2 }), new LSTM(3, 2), new GRU(3, 2, { bidirectional: true })];
    const lengths = fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 });
    const near = { absolute: 1e-6, relative: 1e-6 };
    fc.assert(
      fc.property(fc.constantFrom(...layers), lengths, (layer, lengths) => {
        const batch = randn([4, lengths.length, 3], { generator: new Generator(3) });
        const [whole, ...states] = layer.forward(batch, undefined, { lengths }).flat() as Tensor[];
        for (const [i, length] of lengths.entries()) {
          const own = (x: Tensor) => x.slice(i, i + 1, 1);
          const [alone, ...ends] = layer.forward(own(batch).slice(0, length)).flat() as Tensor[];
          expect(own(whole!).slice(0, length).dataSync()).toAgreeWith(alone!.dataSync(), near);
          ends.forEach((end, k) => {
            expect(own(states[k]!).dataSync()).toAgreeWith(end.dataSync(), near);
          });
        }
      }),
      { numRuns: 8 },
    );
  });

  it("follow lengths when compiled", () => {
    const layer = new RNN(3, 2);
    const run = (x: Tensor, lengths: Tensor) => layer.forward(x, undefined, { lengths })[1];
    const compiled = compile(run, { check: "never" });
    const given = [
      [4, 3],
      [1, 4],
    ].map((lengths) => tensor(lengths, { dtype: "i32" }));
    for (const lengths of given) expect(compiled(x(), lengths).dataSync()).toAgreeWith(run(x(), lengths).dataSync());
  });

  const lengths = (lengths: unknown) => () => new GRU(3, 2).forward(x(), undefined, { lengths: lengths as number[] });
  const rows: [string, () => unknown, string][] = [
    ["lengths beyond the sequence", lengths([5, 1]), "BAD_ARGUMENT"],
    ["empty sequences", lengths([4, 0]), "BAD_ARGUMENT"],
    ["too few lengths", lengths([4]), "BAD_SHAPE"],
    ["lengths of floats", lengths(tensor([4, 3])), "BAD_DTYPE"],
    ["another nonlinearity", () => new RNN(3, 2, { nonlinearity: "gelu" as "relu" }), "BAD_ARGUMENT"],
    ["a cell's input of another width", () => new RNNCell(2, 2).forward(zeros([1, 3])), "BAD_SHAPE"],
    ["a cell's state of another batch", () => new GRUCell(3, 2).forward(zeros([2, 3]), zeros([1, 2])), "BAD_SHAPE"],
    ["half of a cell's state", () => new LSTMCell(3, 2).forward(zeros([1, 3]), zeros([1, 2]) as never), "BAD_ARGUMENT"],
    ["another width", () => new LSTM(2, 2).forward(x()), "BAD_SHAPE"],
    ["an empty sequence", () => new GRU(3, 2).forward(zeros([0, 2, 3])), "BAD_SHAPE"],
    ["a state of another shape", () => new GRU(3, 2).forward(x(), zeros([1, 1, 2])), "BAD_SHAPE"],
    ["half of a state", () => new LSTM(3, 2).forward(x(), zeros([1, 2, 2]) as never), "BAD_ARGUMENT"],
    ["no layers", () => new LSTM(3, 2, { numLayers: 0 }), "BAD_ARGUMENT"],
    ["a misspelt option", () => new GRU(3, 2, { layers: 2 } as never), "BAD_ARGUMENT"],
  ];
  it.each(rows)("reject %s", (_, body, code) => expectCode(code as "BAD_SHAPE", body));
});
