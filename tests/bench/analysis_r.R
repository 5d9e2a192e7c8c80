# Recomputes the answers in `sets` (analysis_sets.c) with R and stops with a status other than 0 on
# a mismatch.
#
# Where R is exact (no ties, no zeros), its own wilcox.test(exact = TRUE, conf.int = TRUE) is the
# judge: p within 1e-9, estimate and interval within 1e-9 (relative for ratios: R works on logarithms,
# so the last digits differ). With ties or zeros R falls back to a normal approximation, which is off
# by up to 0.07 here, and finds its estimate by a root search. There the judge is the definition,
# written out in R: P(|W - mean| >= |w - mean|) over all splits, or over all signs of the ranks that
# remain when zeros were ranked and put aside (Pratt), within 1e-9; and the order statistics of all
# pairs or Walsh averages, at R's own quantiles, within 1e-9.
# nls(algorithm = "port") stops at a relative change of 1e-8 or so and can stop early: our residual
# must not be above its, and the coefficients must agree within 1e-4 where the residuals agree.
source(commandArgs(TRUE)[1])
sets <- Filter(Negate(is.null), sets)
bad <- 0
count <- list()
seen <- function(what) count[[what]] <<- (if (is.null(count[[what]])) 0 else count[[what]]) + 1
say <- function(i, what, got, want) {
    bad <<- bad + 1
    cat(sprintf("set %d (%s): %s is %.15g, R has %.15g\n", i, sets[[i]]$kind, what, got, want))
}
near <- function(i, what, got, want, tol, rel = FALSE) {
    if (is.na(got) && is.na(want)) return(invisible())
    ok <- !is.na(got) && !is.na(want) &&
        abs(got - want) <= tol * (if (rel) max(abs(want), 1e-300) else 1)
    if (!ok) say(i, what, got, want)
}

# The order statistics of 95 % intervals: largest k with P(statistic <= k - 1) <= 0.025; 0: none.
cut_unpaired <- function(n, m) {
    k <- 0
    while (pwilcox(k, n, m) <= 0.025) k <- k + 1
    k
}
cut_paired <- function(n) {
    k <- 0
    while (psignrank(k, n) <= 0.025) k <- k + 1
    k
}
ends <- function(changes, k) {
    s <- sort(changes)
    if (k == 0) c(NA, NA) else c(s[k], s[length(s) + 1 - k])
}

# Over doubled mid-ranks, which are whole numbers: ways[k + 1, s + 1] choices of k ranks have sum s.
p_unpaired <- function(base, new) {
    r <- as.integer(2 * rank(c(base, new)))
    n <- length(base)
    ways <- matrix(0, n + 1, sum(r) + 1)
    ways[1, 1] <- 1
    for (x in r) {
        shifted <- cbind(matrix(0, n + 1, x), ways)[, seq_len(ncol(ways))]
        ways <- ways + rbind(0, shifted[seq_len(n), , drop = FALSE])
    }
    mu <- n * (length(r) + 1)
    far <- abs(seq_len(ncol(ways)) - 1 - mu) >= abs(sum(r[seq_len(n)]) - mu)
    sum(ways[n + 1, far]) / choose(length(r), n)
}
# The same by going through all splits, for small sets: a second opinion on the counting itself.
p_unpaired_listed <- function(base, new) {
    r <- rank(c(base, new))
    n <- length(base)
    mu <- n * (length(r) + 1) / 2
    all <- combn(length(r), n, function(i) sum(r[i]))
    mean(abs(all - mu) >= abs(sum(r[seq_len(n)]) - mu) - 1e-9)
}
p_paired <- function(change) {
    change <- ifelse(abs(change) < 1e-12, 0, change)
    r <- rank(signif(abs(change), 11))
    keep <- change != 0
    r <- as.integer(round(2 * r[keep]))
    w <- sum(r[change[keep] > 0])
    p <- c(1, rep(0, sum(r)))
    for (x in r) p <- (p + c(rep(0, x), p)[seq_along(p)]) / 2
    at <- seq_along(p) - 1
    sum(p[abs(2 * at - sum(r)) >= abs(2 * w - sum(r))])
}

check_compare <- function(i, s) {
    ratio <- s$scale == "ratio"
    b <- if (ratio) log(s$base) else s$base
    x <- if (ratio) log(s$new) else s$new
    back <- if (ratio) exp else identity
    paired <- s$kind == "paired"
    if (paired) {
        change <- x - b
        walsh <- outer(change, change, "+")[upper.tri(diag(length(b)), TRUE)] / 2
        size <- signif(abs(change), 11)
        size[size < 1e-12] <- 0
        plain <- !anyDuplicated(size) && all(size > 0)
        empty <- all(size == 0)
        changes <- walsh
        k <- cut_paired(length(b))
    } else {
        plain <- !anyDuplicated(c(b, x))
        empty <- length(unique(c(b, x))) == 1
        changes <- as.vector(outer(x, b, "-"))
        k <- cut_unpaired(length(b), length(x))
    }
    e <- ends(changes, k)
    near(i, "estimate", s$estimate, back(median(changes)), 1e-9, ratio)
    near(i, "lo", s$lo, back(e[1]), 1e-9, ratio)
    near(i, "hi", s$hi, back(e[2]), 1e-9, ratio)
    if (empty) {
        seen(paste(s$kind, "without change"))
        near(i, "p", s$p, NA, 0)
    } else if (plain) {
        seen(paste(s$kind, "by wilcox.test"))
        # R warns where even its widest interval has less than 95 %
        w <- suppressWarnings(wilcox.test(x, b, paired = paired, exact = TRUE, conf.int = TRUE))
        near(i, "p", s$p, w$p.value, 1e-9)
        near(i, "estimate", s$estimate, back(unname(w$estimate)), 1e-9, ratio)
        if (k > 0) { # R gives the widest interval there is where none has 95 %
            near(i, "lo", s$lo, back(w$conf.int[1]), 1e-9, ratio)
            near(i, "hi", s$hi, back(w$conf.int[2]), 1e-9, ratio)
        }
    } else if (paired) {
        seen("paired with ties or zeros, counted")
        near(i, "p", s$p, p_paired(change), 1e-9)
    } else {
        seen("unpaired with ties, counted")
        near(i, "p", s$p, p_unpaired(b, x), 1e-9)
        if (length(b) + length(x) <= 14) near(i, "p", s$p, p_unpaired_listed(b, x), 1e-9)
    }
}

check_scaling <- function(i, s) {
    d <- data.frame(n = s$n, x = s$x)
    rss <- function(sigma, kappa, lambda)
        sum((d$x - lambda * d$n / (1 + sigma * (d$n - 1) + kappa * d$n * (d$n - 1)))^2)
    near(i, "rss", s$rss, rss(s$sigma, s$kappa, s$lambda), 1e-6, TRUE)
    fit <- tryCatch(
        nls(x ~ lambda * n / (1 + sigma * (n - 1) + kappa * n * (n - 1)), d,
            start = list(sigma = 0.05, kappa = 1e-4, lambda = max(d$x / d$n)),
            algorithm = "port", lower = c(0, 0, 0), upper = c(1, Inf, Inf),
            control = nls.control(maxiter = 500, tol = 1e-12, warnOnly = TRUE)),
        error = function(e) NULL, warning = function(w) NULL)
    if (is.null(fit)) return(seen("scaling that nls cannot fit"))
    theirs <- sum(resid(fit)^2)
    if (s$rss > theirs * (1 + 1e-9)) say(i, "rss", s$rss, theirs)
    if (theirs > s$rss * (1 + 1e-7)) return(seen("scaling where nls stops early"))
    seen("scaling by nls")
    top <- max(d$n) # a coefficient counts by its effect at the largest concurrency
    near(i, "sigma", s$sigma * (top - 1), coef(fit)[["sigma"]] * (top - 1), 1e-3)
    near(i, "kappa", s$kappa * top * (top - 1), coef(fit)[["kappa"]] * top * (top - 1), 1e-3)
    near(i, "lambda", s$lambda, coef(fit)[["lambda"]], 1e-4, TRUE)
}

for (i in seq_along(sets)) {
    s <- sets[[i]]
    if (s$kind == "adjust") {
        seen("adjust by p.adjust")
        want <- p.adjust(s$p, "BH")
        for (k in seq_along(want)) near(i, sprintf("q[%d]", k), s$q[k], want[k], 1e-12)
    } else if (s$kind == "scaling") {
        check_scaling(i, s)
    } else {
        check_compare(i, s)
    }
}
for (what in sort(names(count))) cat(sprintf("%5d %s\n", count[[what]], what))
cat(sprintf("%d sets, %d mismatches\n", length(sets), bad))
if (is.null(count[["scaling by nls"]]) || count[["scaling by nls"]] < 50) {
    cat("nls fitted too few sets to judge by\n")
    bad <- bad + 1
}
quit(status = if (bad > 0) 1 else 0)
