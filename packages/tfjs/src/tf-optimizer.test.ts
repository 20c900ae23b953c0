// A tf.Optimizer whose numbers are our own, on TF.js' cpu backend.
import "@opt/kernels-cpu";
import "@opt/kernels-wasm";
import { init, parameter, tensor } from "@opt/core";
import { NAdam } from "@opt/nadam";
import * as tf from "@tensorflow/tfjs-core";
import "@tensorflow/tfjs-backend-cpu";
import "@tensorflow/tfjs-layers"; // registers the gradients of all ops
import { describe, expect, it } from "vitest";
import { TfOptimizer } from "./tf-optimizer";

await tf.setBackend("cpu");
const devices = await Promise.all(["js", "wasm", "cpu"].map((name) => init(name)));

const START = { w: [1, -2, 0.5, 3], b: [0.25] };

const loss = (w: tf.Tensor, b: tf.Tensor) =>
  tf.mul(tf.sum(tf.matMul(w as tf.Tensor2D, w as tf.Tensor2D)), b) as tf.Scalar;

describe.each(devices)("stepping on $name", (device) => {
  it("has the bits of our own optimizer", () => {
    const w = tf.variable(tf.tensor2d(START.w, [2, 2]));
    const b = tf.variable(tf.scalar(START.b[0]!));
    const optimizer = new TfOptimizer(NAdam, { lr: 0.05, weightDecay: 0.1 }, { device });
    const params = [parameter(START.w, { device, shape: [2, 2] }), parameter(START.b, { device, shape: [] })];
    const own = new NAdam(params, { lr: 0.05, weightDecay: 0.1 });
    for (let step = 0; step < 5; step++) {
      const { value, grads } = tf.variableGrads(() => loss(w, b));
      params.forEach((param, i) => {
        param.grad = tensor(grads[[w, b][i]!.name]!.dataSync() as Float32Array, { shape: param.shape, device });
      });
      own.step();
      optimizer.minimize(() => loss(w, b));
      tf.dispose([value, ...Object.values(grads)]);
      expect(w.dataSync()).toEqual(params[0]!.dataSync());
      expect(b.dataSync()).toEqual(params[1]!.dataSync());
    }
    expect(optimizer.iterations).toBe(5);
    optimizer.dispose();
    tf.dispose([w, b]);
  });
});
