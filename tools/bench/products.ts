/** What a matrix optimizer can't do without: an AdamW step, and its matrix products on tensors of the same shapes. */
import { init, type Tensor, tensor, tidy } from "@opt/core";
import { type Contender, timed } from "./contender";
import { opt } from "./opt";
import { mixedGradients, type OptimizerWork } from "./optimizer-work";

/** Of a square gradient, with another square in the place of bases. */
const PRODUCTS: { readonly [Name in OptimizerWork["optimizer"]]?: (g: Tensor, q: Tensor) => void } = {
  /** Five iterations of three products. */
  Muon(g) {
    for (let i = 0; i < 5; i++) {
      const gram = g.matmul(g, { transposeB: true });
      gram.matmul(gram).matmul(g);
    }
  },
  /** Two factors, two turns into their bases and two back. */
  SOAP(g, q) {
    g.matmul(g, { transposeB: true });
    g.matmul(g, { transposeA: true });
    const turned = g.matmul(q, { transposeA: true }).matmul(q, { transposeA: true });
    const back = { transposeA: true, transposeB: true };
    turned.matmul(q, back).matmul(q, back);
  },
};

export function adamwAndProducts(deviceName: string): Pick<Contender<OptimizerWork>, "open"> {
  return {
    async open(work) {
      const products = PRODUCTS[work.optimizer];
      if (products === undefined) return `the products of ${work.optimizer} are not listed`;
      const adamw = await opt(deviceName).open({ ...work, optimizer: "AdamW" });
      if (typeof adamw === "string") return adamw;
      const device = await init(deviceName);
      const { tensors, size, rows = 1 } = work;
      const matrices = [0, 1].map(() => tensor(mixedGradients(size), { device, shape: [rows, size / rows] }));
      const [g, q] = matrices as [Tensor, Tensor];
      const multiply = () => {
        for (let i = 0; i < tensors; i++) tidy(() => products(g, q));
      };
      return {
        ...adamw,
        run: async (steps) => (await adamw.run(steps)) + (await timed(steps, multiply, () => device.sync())),
        async close() {
          await adamw.close();
          for (const matrix of matrices) matrix.dispose();
        },
      };
    },
  };
}
