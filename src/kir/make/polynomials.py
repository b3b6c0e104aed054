#!/usr/bin/env python3
"""Prints polynomials.inc: the coefficients that math_exp.cpp and math_trig.cpp use, lowest order first.

Each is the Chebyshev interpolant (within a small factor of the best polynomial) of the smooth part P of a function that is
written as lead(x) + factor(x) * P(u); the comment gives the largest relative error of the whole, rounding aside. Needs mpmath.
"""
import sys
from mpmath import mp, mpf, matrix, lu_solve, cos, pi, exp, log, sin, tanh, erf, erfc, atan, sqrt, taylor

mp.dps = 60


def interpolate(p, lo, hi, degree):
    lo, hi = mpf(lo), mpf(hi)
    n = degree + 1
    nodes = [(lo + hi) / 2 + (hi - lo) / 2 * cos(pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    a, b = matrix(n, n), matrix(n, 1)
    for i, u in enumerate(nodes):
        b[i] = p(u)
        for j in range(n):
            a[i, j] = u ** j
    return [c for c in lu_solve(a, b)]


def emit(kind, name, p, whole, lead, factor, lo, hi, degree):
    """p(u) on [lo, hi]; whole(u) ~ lead(u) + factor(u) * P(u) measured relatively."""
    c = interpolate(p, lo, hi, degree)
    worst = mpf(0)
    for k in range(1, 400):
        u = mpf(lo) + (mpf(hi) - mpf(lo)) * k / 400
        if u == 0:
            continue
        value = sum(ci * u ** i for i, ci in enumerate(c))
        worst = max(worst, abs((lead(u) + factor(u) * value - whole(u)) / whole(u)))
    digits = 9 if kind == "f32" else 17
    text = ", ".join(mp.nstr(ci, digits, strip_zeros=False, min_fixed=-5, max_fixed=5) for ci in c)
    print(f"// {name} {kind}: {mp.nstr(worst, 2)}")
    print(f"[[maybe_unused]] constexpr double k{name}_{kind}[] = {{{text}}};")


def near(f, series_at_zero):
    """f, except where it cancels: then the Taylor value."""
    return lambda u: series_at_zero(u) if abs(u) < mpf("1e-9") else f(u)


def poly(cs):
    return lambda u: sum(c * u ** i for i, c in enumerate(cs))


def main():
    mp.dps = 80
    r = log(2) / 2 * mpf("1.001")
    half = 1 / sqrt(mpf(2))
    exp_p = near(lambda u: (exp(u) - 1 - u) / u ** 2, lambda u: mpf(1) / 2 + u / 6)
    log_p = near(lambda u: (log(1 + u) - u + u * u / 2) / u ** 3, lambda u: mpf(1) / 3 - u / 4)
    # log((1 + s) / (1 - s)) = 2 s + s * R(s^2); P = R / z
    def atanh_p(z):
        if z < mpf("1e-12"):
            return mpf(2) / 3 + 2 * z / 5
        s = sqrt(z)
        return (log((1 + s) / (1 - s)) / s - 2) / z
    def odd(f, c3, c5):  # f(x) = x + x^3 P(x^2)
        def p(z):
            if z < mpf("1e-12"):
                return c3 + c5 * z
            x = sqrt(z)
            return (f(x) - x) / x ** 3
        return p
    def cos_p(z):  # 1 - z/2 + z^2 P(z)
        return (cos(sqrt(z)) - 1 + z / 2) / z ** 2 if z > mpf("1e-9") else mpf(1) / 24 - z / 720
    two_over_root_pi = 2 / sqrt(pi)
    def erf_p(z):  # erf(x) = x + x P(x^2)
        return (erf(sqrt(z)) / sqrt(z) if z > mpf("1e-12") else two_over_root_pi * (1 - z / 3)) - 1
    q = pi / 4 * mpf("1.001")
    z_log = ((sqrt(mpf(2)) - 1) / (sqrt(mpf(2)) + 1)) ** 2 * mpf("1.001")
    S = lambda f: (lambda z: f(sqrt(z)))
    x1, x3 = S(lambda x: x), S(lambda x: x ** 3)
    for kind, d in (("f32", dict(exp=4, log=7, logs=3, sin=2, cos=2, tanh=4, erf=6, atan=8)),
                    ("f64", dict(exp=10, log=0, logs=7, sin=6, cos=6, tanh=12, erf=12, atan=0))):
        emit(kind, "Exp", exp_p, exp, lambda u: 1 + u, lambda u: u * u, -r, r, d["exp"])
        if d["log"]:
            emit(kind, "Log", log_p, lambda u: log(1 + u), lambda u: u - u * u / 2, lambda u: u ** 3, half - 1, sqrt(mpf(2)) - 1, d["log"])
        emit(kind, "LogRatio", atanh_p, S(lambda s: log((1 + s) / (1 - s))), S(lambda s: 2 * s), x3, 0, z_log, d["logs"])
        emit(kind, "Sin", odd(sin, -mpf(1) / 6, mpf(1) / 120), S(sin), x1, x3, 0, q * q, d["sin"])
        emit(kind, "Cos", cos_p, S(cos), lambda z: 1 - z / 2, lambda z: z * z, 0, q * q, d["cos"])
        emit(kind, "Tanh", odd(tanh, -mpf(1) / 3, mpf(2) / 15), S(tanh), x1, x3, 0, mpf("0.625") ** 2, d["tanh"])
        emit(kind, "Erf", erf_p, S(erf), x1, x1, 0, 1, d["erf"])
        if d["atan"]:
            emit(kind, "Atan", odd(atan, -mpf(1) / 3, mpf(1) / 5), S(atan), x1, x3, 0, 1, d["atan"])
        else:  # |x| <= tan(pi / 8)
            emit(kind, "Atan", odd(atan, -mpf(1) / 3, mpf(1) / 5), S(atan), x1, x3, 0, (sqrt(mpf(2)) - 1) ** 2 * mpf("1.001"), 12)
    # erfc(a) = exp(P(a)): the error that counts is that of erf = 1 - erfc, so P may be wrong by 2^-24 / erfc.
    emit("f32", "LogErfc", lambda a: log(erfc(a)), lambda a: log(erfc(a)), lambda a: mpf(0), lambda a: mpf(1), mpf("0.99"), mpf("4.0"), 8)
    # erfc(a) = t exp(-a^2 + P(t)), t = 2 / (2 + a), a in [1, 6]
    def erfc_p(t):
        a = 2 / t - 2
        return log(erfc(a) / t) + a * a
    emit("f64", "LogErfc", erfc_p, erfc_p, lambda t: mpf(0), lambda t: mpf(1), mpf("0.25"), mpf("0.667"), 15)


if __name__ == "__main__":
    sys.stdout.write("// Made by polynomials.py, which says what each stands for; the figure is the relative error of the approximation.\n")
    main()
