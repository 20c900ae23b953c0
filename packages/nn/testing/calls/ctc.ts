/** Calls of ctcLoss, of which PyTorch knows the values and the gradients. */
import type { CallInput, TorchCall } from "@opt/testkit";
import { ctcLoss, type Reduction } from "../../src/index";
import { RandomInputs } from "../random-inputs";

type Form = "rows" | "joined" | "alone";

const FORMS: readonly Form[] = ["rows", "joined", "alone"];
const REDUCTIONS: readonly Reduction[] = ["mean", "sum", "none"];

/** Random sequences. The first four take all lengths as tensors, as compiled functions do. */
export function ctcCalls(count: number): TorchCall[] {
  const make = new RandomInputs(32);
  return Array.from({ length: count }, (_, i) => {
    const form = i < 4 ? "rows" : make.random.pick(FORMS);
    return ctcCall(make, i, form);
  });
}

function ctcCall(make: RandomInputs, i: number, form: Form): TorchCall {
  const dtype = i % 2 === 0 ? "f64" : "f32";
  const zeroInfinity = make.flip();
  const [batch, classes, most] = [form === "alone" ? 1 : make.between(1, 3), make.between(2, 5), make.between(1, 4)];
  // Long enough for every label, unless what is not may count as 0.
  const times = zeroInfinity ? make.between(1, 8) : 2 * most + make.between(0, 3);
  const blank = make.between(0, classes - 1);
  const lengths = (low: number, high: number) => Array.from({ length: batch }, () => make.between(low, high));
  const ends = zeroInfinity ? lengths(1, times) : lengths(2 * most, times);
  const counts = lengths(form === "joined" ? 1 : 0, most);
  const label = () => (blank + 1 + make.random.below(classes - 1)) % classes;
  const size = form === "rows" ? batch * most : counts.reduce((a, b) => a + b, 0);
  const whole = (values: number[], shape: readonly number[]): CallInput => ({ values, shape, dtype: "i32" });
  const labels = whole(Array.from({ length: size }, label), form === "rows" ? [batch, most] : [size]);
  const reduction = make.random.pick(REDUCTIONS);
  const shape = form === "alone" ? [times, classes] : [times, batch, classes];
  const scores = make.numbers(shape, dtype, { low: -3, high: 3 });
  const options = { blank, reduction, zeroInfinity } as const;
  const python = `blank=${blank}, reduction="${reduction}", zero_infinity=${zeroInfinity ? "True" : "False"}`;
  const lists = form === "alone" ? "c[0].long(), d[0].long()" : "c.long(), d.long()";
  return {
    name: `${i}: ctcLoss, ${form}, [${shape}], ends ${ends}, labels ${counts}, ${python}, ${dtype}`,
    inputs: [scores, labels, whole(ends, [batch]), whole(counts, [batch])],
    code: `F.ctc_loss(a.log_softmax(-1), b.long(), ${lists}, ${python})`,
    run: (a, b, c, d) => {
      const logProbs = a!.logSoftmax(-1);
      return form === "rows" ? ctcLoss(logProbs, b!, c!, d!, options) : ctcLoss(logProbs, b!, ends, counts, options);
    },
  };
}
