-- Apart from adding, since a new row could not begin below zero.
UPDATE acta_counts SET jobs = jobs - ?4 WHERE ns = ?1 AND state = ?2 AND business = ?3
