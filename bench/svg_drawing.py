"""What the pictures of the benches share: SVG that reads on light and dark pages and says which command drew it."""

import html
import math
import pathlib
import sys

STYLE = """
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; font-size: 13px; fill: #1f2328; }
  .page { fill: #ffffff; stroke: #d1d9e0; }
  .title { font-size: 19px; font-weight: 600; }
  .head { font-size: 14px; font-weight: 600; }
  .note { fill: #59636e; font-size: 12px; }
  .grid { stroke: #d8dee4; }
  .axis { stroke: #818b98; }
  .mark { stroke: #bc4c00; stroke-width: 1.5; stroke-dasharray: 5 3; }
  .mark-text { fill: #bc4c00; font-size: 12px; }
  .fp32 { fill: #1f6feb; }
  .TF32 { fill: #8250df; }
  .cuBLAS { fill: #afb8c1; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .page { fill: #0d1117; stroke: #3d444d; }
    .note { fill: #9198a1; }
    .grid { stroke: #2a3038; }
    .axis { stroke: #656c76; }
    .mark { stroke: #f0883e; }
    .mark-text { fill: #f0883e; }
    .fp32 { fill: #388bfd; }
    .TF32 { fill: #a371f7; }
    .cuBLAS { fill: #59636e; }
  }
"""


class Drawing:
    """SVG elements, gathered from the top down."""

    def __init__(self, width):
        self.width, self.height, self.parts, self.style = width, 0, [], ""

    def text(self, x, y, text, kind="", anchor="start"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">'
                          f"{html.escape(text)}</text>")

    def line(self, x1, y1, x2, y2, kind):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>')

    def bar(self, x, y, width, height, kind):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{height:.1f}" '
                          f'rx="2" class="{kind}"/>')

    def write(self, path, title):
        page = f'<rect x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="8" class="page"/>'
        body = "\n".join([page] + self.parts)
        pathlib.Path(path).write_text(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" '
            f'width="{self.width}" height="{self.height}" role="img" aria-label="{html.escape(title)}">\n'
            f"<!-- bench/{pathlib.Path(sys.argv[0]).name} {' '.join(sys.argv[1:])} -->\n"
            f"<style>{STYLE}{self.style}</style>\n{body}\n</svg>\n")


class Panel:
    """A plot in a box (left, right, top, bottom) of a drawing, over ranges of x and y, each linear or logarithmic."""

    def __init__(self, drawing, box, xs, ys, log_x=False, log_y=False):
        self.drawing, (self.left, self.right, self.top, self.bottom) = drawing, box
        self.xs, self.ys = xs, ys
        self.scale_x, self.scale_y = (math.log if log else float for log in (log_x, log_y))

    def x(self, x):
        low, high = map(self.scale_x, self.xs)
        return self.left + (self.right - self.left) * (self.scale_x(x) - low) / (high - low)

    def y(self, y):
        low, high = map(self.scale_y, self.ys)
        return self.bottom - (self.bottom - self.top) * (self.scale_y(y) - low) / (high - low)

    def axes(self, heading, x_ticks, y_ticks, marks=True):
        """Ticks are (value, label); those of x have marks too."""
        self.drawing.text(self.left, self.top - 14, heading, "head")
        for value, label in y_ticks:
            y = self.y(value)
            self.drawing.line(self.left, y, self.right, y, "axis" if value == self.ys[0] else "grid")
            self.drawing.text(self.left - 8, y + 4.5, label, "note", "end")
        for value, label in x_ticks:
            if marks:
                self.drawing.line(self.x(value), self.bottom, self.x(value), self.bottom + 4, "axis")
            self.drawing.text(self.x(value), self.bottom + 18, label, "note", "middle")

    def curve(self, points, kind, attributes=""):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        self.drawing.parts.append(f'<polyline points="{path}" class="curve {kind}"{attributes}/>')

    def dot(self, point, kind, radius):
        x, y = point
        self.drawing.parts.append(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{radius}" class="{kind}"/>')


def nice_step(largest, most):
    """A round step of an axis that reaches `largest` in at most `most` steps."""
    for step in (s * 10 ** e for e in range(-2, 6) for s in (1, 2, 2.5, 5)):
        if largest / step <= most:
            return step
    return largest
