// The systems themselves, drawn from their state. Units are theirs; the first number of a state is its first axis.

function stage(canvas, low, high, ratio = 0.5) {
  const { context, width, height } = fitted(canvas, ratio);
  const size = Math.min(width / (high[0] - low[0]), height / (high[1] - low[1])) * 0.94;
  const middle = [(low[0] + high[0]) / 2, (low[1] + high[1]) / 2];
  const at = (x, y) => [width / 2 + (x - middle[0]) * size, height / 2 - (y - middle[1]) * size];
  const ink = theme.colour("ink");
  context.lineCap = "round";
  const pen = {
    context, size, at, width, height,
    line(points, colour = ink, wide = 2) {
      context.beginPath();
      points.forEach(([x, y], k) => (k ? context.lineTo(...at(x, y)) : context.moveTo(...at(x, y))));
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.stroke();
    },
    disc(x, y, radius, colour = ink) {
      context.beginPath();
      context.arc(...at(x, y), radius * size, 0, 2 * Math.PI);
      context.fillStyle = colour;
      context.fill();
    },
    ring(x, y, radius, colour = ink, wide = 3) {
      context.beginPath();
      context.arc(...at(x, y), radius * size, 0, 2 * Math.PI);
      context.strokeStyle = colour;
      context.lineWidth = wide;
      context.stroke();
    },
    arrow(x, y, dx, dy, colour = theme.colour("orange")) {
      if (Math.hypot(dx, dy) * size < 3) return;
      pen.line([[x, y], [x + dx, y + dy]], colour, 4);
      const angle = Math.atan2(dy, dx);
      const head = 9 / size;
      for (const turn of [2.6, -2.6]) {
        pen.line([[x + dx, y + dy], [x + dx + head * Math.cos(angle + turn), y + dy + head * Math.sin(angle + turn)]], colour, 4);
      }
    },
    words(text, x, y) {
      context.font = "11px system-ui, sans-serif";
      context.fillStyle = theme.colour("muted");
      context.textAlign = "center";
      context.fillText(text, ...at(x, y));
    },
  };
  return pen;
}

function drawMountainCar(canvas, [x], control) {
  const tall = 0.42; // of the hill: sin 3x in full height would be a well
  const height = (at) => tall * Math.sin(3 * at);
  const pen = stage(canvas, [-1.3, -0.55], [0.68, 0.85], 0.6);
  const hill = Array.from({ length: 120 }, (_, k) => -1.2 + 1.8 * k / 119).map((at) => [at, height(at)]);
  pen.line(hill, theme.colour("muted"), 3);
  pen.line([[-1.2, height(-1.2)], [-1.2, height(-1.2) + 0.3]], theme.colour("muted"), 3);
  pen.line([[0.5, height(0.5)], [0.5, 0.76]], theme.colour("green"), 3);
  pen.line([[0.5, 0.76], [0.6, 0.7], [0.5, 0.64]], theme.colour("green"), 3);
  const slope = Math.atan(3 * tall * Math.cos(3 * x));
  const [along, up] = [[Math.cos(slope), Math.sin(slope)], [-Math.sin(slope), Math.cos(slope)]];
  const spot = (a, b) => [x + a * along[0] + b * up[0], height(x) + a * along[1] + b * up[1]];
  const body = [[-0.11, 0.06], [-0.11, 0.13], [-0.06, 0.13], [-0.03, 0.2], [0.05, 0.2], [0.08, 0.13], [0.12, 0.13], [0.12, 0.06]];
  pen.context.beginPath();
  body.forEach(([a, b], k) => (k ? pen.context.lineTo(...pen.at(...spot(a, b))) : pen.context.moveTo(...pen.at(...spot(a, b)))));
  pen.context.fillStyle = theme.colour("blue");
  pen.context.fill();
  for (const wheel of [-0.065, 0.065]) pen.disc(...spot(wheel, 0.045), 0.04);
  if (control) pen.arrow(...spot(0, 0.3), 0.2 * control[0] * along[0], 0.2 * control[0] * along[1]);
}

function drawPendulum(canvas, [angle], control) {
  const pen = stage(canvas, [-1.9, -1.25], [1.9, 1.25]);
  const tip = [Math.sin(angle), Math.cos(angle)];
  pen.line([[0, 1], [0, 1.18]], theme.colour("green"), 3);
  pen.line([[0, 0], tip], theme.colour("ink"), 6);
  pen.disc(0, 0, 0.06, theme.colour("muted"));
  pen.disc(...tip, 0.13, theme.colour("blue"));
  if (control && control[0]) pen.arrow(-0.55 * Math.sign(control[0]), -0.25, 0.22 * control[0], 0);
}

function drawAcrobot(canvas, [one, , two], control) {
  const pen = stage(canvas, [-3, -2.25], [3, 2.25]);
  const elbow = [Math.sin(one), -Math.cos(one)];
  const tip = [elbow[0] + Math.sin(one + two), elbow[1] - Math.cos(one + two)];
  pen.line([[-1.6, 1], [1.6, 1]], theme.colour("green"), 2);
  pen.line([[0, 0], elbow], theme.colour("ink"), 7);
  pen.line([elbow, tip], theme.colour("blue"), 6);
  pen.disc(0, 0, 0.1, theme.colour("muted"));
  pen.disc(...elbow, 0.09, theme.colour("orange"));
  pen.disc(...tip, 0.09, theme.colour("blue"));
  if (control) pen.words(`torque ${num(control[0])}`, 0, -2.2);
}

function drawCartPole(rail) {
  return (canvas, [x, , angle], control) => {
    const reach = Math.max(2.6, Math.abs(x) + 0.5);
    const pen = stage(canvas, [-reach, -0.8], [reach, 0.8], 0.45);
    const ends = rail ?? reach;
    pen.line([[-ends, -0.12], [ends, -0.12]], theme.colour("muted"), 3);
    if (rail) for (const end of [-rail, rail]) pen.line([[end, -0.2], [end, 0.1]], theme.colour("bad"), 4);
    pen.line([[0, 0.5], [0, 0.62]], theme.colour("green"), 3);
    const [left, top] = pen.at(x - 0.22, 0.08);
    pen.context.fillStyle = theme.colour("blue");
    pen.context.fillRect(left, top, 0.44 * pen.size, 0.2 * pen.size);
    const tip = [x + 0.5 * Math.sin(angle), -0.5 * Math.cos(angle)];
    pen.line([[x, 0], tip], theme.colour("ink"), 6);
    pen.disc(...tip, 0.05, theme.colour("orange"));
    if (control) pen.arrow(x, -0.4, 0.06 * control[0], 0);
  };
}

function drawBicycle(canvas, [roll, , handlebar], control) {
  const pen = stage(canvas, [-2.2, -0.35], [2.2, 1.95]);
  const lean = (x, y) => [-1 + x * Math.cos(roll) + y * Math.sin(roll), -x * Math.sin(roll) + y * Math.cos(roll)];
  pen.line([[-2, 0], [0, 0]], theme.colour("muted"), 3);
  pen.line([lean(0, 0), lean(0, 0.68)], theme.colour("ink"), 9);
  pen.line([lean(-0.3, 1), lean(0.3, 1)], theme.colour("ink"), 4);
  const rider = control ? 4 * control[1] : 0;
  pen.line([lean(0, 0.68), lean(rider, 1.35)], theme.colour("blue"), 9);
  pen.disc(...lean(rider, 1.55), 0.13, theme.colour("blue"));
  pen.words("from behind", -1, -0.28);
  const turned = (x, y) => [1.1 + x * Math.cos(-handlebar) - y * Math.sin(-handlebar), 1.15 + x * Math.sin(-handlebar) + y * Math.cos(-handlebar)];
  pen.line([[1.1, 0.25], [1.1, 1.15]], theme.colour("ink"), 6);
  pen.line([turned(0, -0.3), turned(0, 0.3)], theme.colour("ink"), 8);
  pen.line([turned(-0.35, -0.1), turned(0.35, -0.1)], theme.colour("blue"), 5);
  if (control && control[0]) pen.arrow(1.1, 1.65, 0.15 * control[0], 0);
  pen.words("from above", 1.1, -0.28);
}

const SYSTEMS = {
  "mountain-car": drawMountainCar,
  pendulum: drawPendulum,
  "pendulum-continuous": drawPendulum,
  acrobot: drawAcrobot,
  "cart-pole": drawCartPole(null),
  "cart-pole-continuous": drawCartPole(null),
  "cart-pole-rail": drawCartPole(2.4),
  bicycle: drawBicycle,
};
